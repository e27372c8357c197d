use mantile::{
    cost::drive::Drive,
    graph::model::ModelGraph,
    search::{point::*, question::*, run::*},
    serving::terms::*,
    spec::{cluster::*, objective::*, *},
};
fn rd<T: serde::de::DeserializeOwned>(p: &str) -> T {
    text::from_json(&std::fs::read_to_string(p).unwrap(), p).unwrap()
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let t0 = std::time::Instant::now();
    let m = mantile::spec::model::file::ModelFile::parse(&std::fs::read_to_string(&a[1]).unwrap()).unwrap();
    let g = ModelGraph::build(&m.model_config().unwrap()).unwrap();
    let sys: System = rd(&format!("hardware/systems/{}.json", a[2]));
    let dev: device::Device = rd(&format!("hardware/devices/{}.json", sys.device));
    let cl = Cluster::build(&sys, dev, sys.nodes, sys.devices_per_node).unwrap();
    let rt: runtime::Runtime = rd("hardware/runtimes/vllm.json");
    let bf: format::Format = rd("hardware/formats/bf16.json");
    let mut formats = vec![];
    for w in a[3].split(',') {
        let f: format::Format = rd(&format!("hardware/formats/{w}.json"));
        let ma = Drive { cluster: &cl, runtime: &rt, weights: &f, kv: &bf, native: &bf }.machine().unwrap();
        formats.push(Formats::new(&f, &bf, ma));
    }
    let bill =
        cl.device.price.rent.as_ref().map(|f| mantile::serving::economy::Bill::Rented(f.datum("rent")));
    let st =
        Stated { lengths: Lengths { isl: 2048, osl: 512, prefix: 0 }, draw: None, bill, host_link: None };
    let ob: Objective = rd(&format!("objectives/{}.json", a[4]));
    let q = Question::new(
        g,
        cl,
        &rt,
        formats,
        st,
        Traffic::Free,
        Limits { ttft: Some(2.0), tpot: Some(0.05), e2e: None },
        (ob.optimize, ob.pareto),
    );
    println!("prepared {:?}", t0.elapsed());
    let o = run(&q, &UNWATCHED);
    println!("searched {:?} {:?}", t0.elapsed(), o.status);
    let show = |f: &mantile::search::outcome::Found| {
        println!(
            "{} {:?} ttft {:.0} tpot {:.1} out {:.0} dev {} usd {:.3}",
            q.formats[f.candidate.formats].weights,
            f.candidate
                .pools
                .iter()
                .map(|p| format!("{:?} {}x {} c{}", p.duty, p.replicas, p.plan.label(), p.concurrency))
                .collect::<Vec<_>>(),
            f.point[0] * 1e3,
            f.point[1] * 1e3,
            f.point[3],
            f.point[9],
            f.point[6] * 1e6
        )
    };
    o.best.iter().for_each(show);
    println!("alts");
    o.alternatives.iter().for_each(show);
    println!("front {}", o.front.len());
    println!("{}", serde_json::to_string(&o.census).unwrap());
    let _ = WIDTH;
}
