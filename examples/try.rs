use mantile::{
    cost::drive::Drive,
    graph::model::ModelGraph,
    plan::{group::tiers, parallel::ParallelPlan},
    quantity::{ledger::Ledger, read::Plain},
    serving::{evaluate::*, instance::Instance, round, terms::*},
    spec::{cluster::*, *},
};
fn rd<T: serde::de::DeserializeOwned>(p: &str) -> T {
    text::from_json(&std::fs::read_to_string(p).unwrap(), p).unwrap()
}
fn main() {
    let m = mantile::spec::model::file::ModelFile::parse(
        &std::fs::read_to_string(
            std::env::args().nth(1).unwrap_or("models/meta-llama--Llama-3.3-70B-Instruct.json".into()),
        )
        .unwrap(),
    )
    .unwrap();
    let g = ModelGraph::build(&m.model_config().unwrap()).unwrap();
    let sys: System = rd("hardware/systems/dgx-h100.json");
    let dev: device::Device = rd("hardware/devices/nvidia-h100-sxm.json");
    let cl = Cluster::build(&sys, dev, 1, 8).unwrap();
    let rt: runtime::Runtime = rd("hardware/runtimes/vllm.json");
    let bf: format::Format = rd("hardware/formats/bf16.json");
    let f8: format::Format = rd("hardware/formats/fp8.json");
    let ma = Drive { cluster: &cl, runtime: &rt, weights: &f8, kv: &bf, native: &bf }.machine().unwrap();
    let st = Stated {
        lengths: Lengths { isl: 2048, osl: 512, prefix: 0 },
        draw: None,
        bill: None,
        host_link: None,
    };
    let (mp, tp) = (ma.read(&Plain), st.read(&Plain));
    let sh = tiers(&cl);
    for t in [1, 2, 4, 8] {
        let plan = ParallelPlan { tp: t, moe_tp: t, ..ParallelPlan::SINGLE };
        let i = Instance::new(&g, plan, vec![g.layers.value as u32], &sh);
        let pr = round::prefill(&Plain, &i, &mp, &tp, &mut ());
        for c in [1, 16, 64, 256] {
            let load = Load { concurrency: c, offload: Offload::Nothing };
            let e = aggregated(
                &Plain,
                &[Pool { instance: &i, replicas: 1, prompt: pr, load }],
                &mp,
                &tp,
                &Demand::Free,
                &mut (),
            );
            println!(
                "tp{t} c{c} ttft {:.1} tpot {:.2} out {:.0} mem {:.1}/{:.1} GiB kv {:.1} act {:.1}",
                e.metrics.ttft.0 * 1e3,
                e.metrics.tpot.0 * 1e3,
                e.metrics.output_tok_s.0,
                e.memory.total.0 / (1u64 << 30) as f64,
                e.memory.usable.0 / (1u64 << 30) as f64,
                e.memory.kv.0 / (1u64 << 30) as f64,
                e.memory.activations.0 / (1u64 << 30) as f64
            );
        }
        let t0 = std::time::Instant::now();
        let n = 200_000;
        let mut s = 0.0;
        for k in 0..n {
            let pr = round::prefill(&Plain, &i, &mp, &tp, &mut ());
            let e = aggregated(
                &Plain,
                &[Pool {
                    instance: &i,
                    replicas: 1,
                    prompt: pr,
                    load: Load { concurrency: 1 + k % 256, offload: Offload::Nothing },
                }],
                &mp,
                &tp,
                &Demand::Free,
                &mut (),
            );
            s += e.metrics.tpot.0;
        }
        println!("{:.0} ns/eval {s}", t0.elapsed().as_nanos() as f64 / n as f64);
        let l = Ledger::new();
        let (mt, tt) = (ma.read(&&l), st.read(&&l));
        let pr = round::prefill(&&l, &i, &mt, &tt, &mut ());
        let e = aggregated(
            &&l,
            &[Pool {
                instance: &i,
                replicas: 1,
                prompt: pr,
                load: Load { concurrency: 64, offload: Offload::Nothing },
            }],
            &mt,
            &tt,
            &Demand::Free,
            &mut (),
        );
        println!("traced {:?} {:?}", e.metrics.tpot.value(), l.unit_errors());
    }
}
