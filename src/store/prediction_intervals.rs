//! Prediction intervals of a problem: those of the nearest measurements.

use super::resolved_scenario::ResolvedScenario;
use crate::graph::model::ModelGraph;
use crate::spec::nearness::{FitQuery, Interval, MeasuredAt, Nearness, PredictionIntervals};

/// Key of a model in measurements: its architecture and its parameter count.
pub fn model_key(graph: &ModelGraph) -> String {
    format!("{} {}", graph.model_type, graph.unique_parameters())
}

impl ResolvedScenario {
    /// The prediction intervals in this weight format. Borrowed constants get the widest interval; rows of one's own
    /// narrow it.
    pub fn prediction_intervals(&self, weight_format: &str) -> PredictionIntervals {
        let shipped = self.shipped_intervals(weight_format);
        let Some(own) = self.correction(weight_format) else { return shipped };
        shipped.map(|interval| own.narrow(interval))
    }

    /// Those of the fit, but for a processor that has all layers those of processors.
    fn shipped_intervals(&self, weight_format: &str) -> PredictionIntervals {
        let of_fit = self.intervals_of_fit(weight_format);
        if !(self.cluster.device.is_processor() && self.computes_on_processor()) {
            return of_fit;
        }
        let [one, more] = of_fit.on_processor.clone();
        PredictionIntervals { aggregated: one, beyond: Some((1, more)), ..of_fit }
    }

    fn intervals_of_fit(&self, weight_format: &str) -> PredictionIntervals {
        let lengths = self.lengths();
        let model = model_key(&self.graph);
        let query = FitQuery {
            device: &self.cluster.device,
            weight_format,
            model: &model,
            lengths: (lengths.isl, lengths.osl),
        };
        let unmeasured = &self.defaults.unmeasured;
        let fit = self.runtime.serving_fit.as_ref();
        let on_processor = self.on_processor();
        let near =
            fit.map(|fit| (fit, fit.near(&query))).filter(|(_, why)| !why.contains(&Nearness::Nothing));
        let Some((fit, why)) = near else {
            return PredictionIntervals {
                aggregated: unmeasured.clone(),
                beyond: None,
                on_processor,
                over_hosts: unmeasured.clone(),
                disaggregated: unmeasured.clone(),
            };
        };
        let of = |why: &[Nearness]| {
            fit.interval(why).map_or_else(|| unmeasured.clone(), Interval::around_prediction)
        };
        let with = |more: Nearness| of(&[&why[..], &[more]].concat());
        let aggregated = of(&why);
        let measured = fit.requests(&query).filter(|_| !why.contains(&Nearness::Load));
        // No surer than loads that were measured, so that errors never shrink as load grows.
        let beyond = measured.map(|[_, most]| (most, with(Nearness::Load).widest(&aggregated)));
        // All runs of the fit lie inside a host, or inside a domain of several.
        let borrowed = Interval { near: Nearness::Hosts, ..unmeasured.clone() }.around_prediction();
        let over_hosts = with(Nearness::Load).widest(&borrowed);
        let disaggregated = with(Nearness::Split);
        PredictionIntervals { aggregated, beyond, on_processor, over_hosts, disaggregated }
    }

    /// Whether its runtime has constants of a processor, and the processor's figures are known.
    fn computes_on_processor(&self) -> bool {
        self.runtime.host.is_some() && self.cluster.processor.is_some()
    }

    /// The intervals of replicas with a part that a processor computes: with one request at a time, as measured, and with
    /// more.
    fn on_processor(&self) -> [Interval; 2] {
        let unmeasured = &self.defaults.unmeasured;
        if !self.computes_on_processor() {
            return [unmeasured.clone(), unmeasured.clone()];
        }
        let one = self.defaults.on_processor.clone().around_prediction();
        let load = self.runtime.serving_fit.as_ref().and_then(|fit| fit.interval(&[Nearness::Load]));
        let more = load.map_or_else(|| unmeasured.clone(), Interval::around_prediction).widest(&one);
        [one, more]
    }

    /// The measured combinations nearest to the problem: of its model on its device in its format; else of any model on
    /// the device; else none.
    pub fn nearest_measured(&self, weight_format: &str) -> Vec<MeasuredAt> {
        let Some(fit) = self.runtime.serving_fit.as_ref() else { return vec![] };
        let (lengths, model) = (self.lengths(), model_key(&self.graph));
        let device = &self.cluster.device;
        let query = FitQuery { device, weight_format, model: &model, lengths: (lengths.isl, lengths.osl) };
        fit.like(&query).into_iter().filter(|one| one.hardware == device.measured_as()).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::parallel::ParallelPlan;
    use crate::spec::host_part::HostPart;
    use crate::spec::nearness::ErrorClass;
    use crate::spec::offload::Offload;
    use crate::spec::scenario::Scenario;
    use crate::store::catalog::Catalog;

    fn problem(model: &str, hardware: &str, runtime: &str, stated: Scenario) -> ResolvedScenario {
        let scenario = Scenario {
            model: Some(model.into()),
            hardware: Some(hardware.into()),
            runtime: Some(runtime.into()),
            ..stated
        };
        ResolvedScenario::resolve(&Catalog::default(), &scenario).unwrap()
    }

    fn near(model: &str, hardware: &str, runtime: &str) -> Nearness {
        let stated = Scenario { isl: Some(1000), osl: Some(1000), ..Scenario::default() };
        let resolved = problem(model, hardware, runtime, stated);
        resolved.prediction_intervals(&resolved.weight_formats[0].format.id).aggregated.near
    }

    #[test]
    fn an_unseen_model_is_never_as_near_as_a_measured_one() {
        assert_eq!(near("openai/gpt-oss-120b", "8xh100", "vllm"), Nearness::Measured);
        assert_eq!(near("google/gemma-3-27b-it", "8xh100", "vllm"), Nearness::Model);
        assert_eq!(near("openai/gpt-oss-120b", "8xl40s", "vllm"), Nearness::Vendor);
    }

    #[test]
    fn what_borrows_its_constants_has_the_widest_interval_there_is() {
        for (hardware, runtime) in [("tpu-v6e-8chip", "vllm-tpu"), ("gaudi3-8", "vllm-gaudi")] {
            let resolved = problem("Llama-3.1-8B", hardware, runtime, Scenario::default());
            let sure = resolved.prediction_intervals("bf16");
            assert_eq!(sure.aggregated.near, Nearness::Nothing);
            assert_eq!(sure.aggregated.tpot, resolved.defaults.unmeasured.tpot);
            assert_eq!(sure.disaggregated.ttft, resolved.defaults.unmeasured.ttft);
        }
    }

    #[test]
    fn loads_beyond_all_measured_ones_are_less_sure() {
        let stated = Scenario { isl: Some(1000), osl: Some(1000), ..Scenario::default() };
        let resolved = problem("openai/gpt-oss-120b", "8xh100", "vllm", stated);
        let problem = resolved.problem().unwrap();
        let pair = &problem.formats[0];
        let (most, _) = pair.intervals.clone().and_then(|sure| sure.beyond).unwrap();
        let [inside, outside] =
            [most, 2 * most].map(|requests| pair.interval(ErrorClass::Aggregated, requests).unwrap());
        assert_eq!((inside.near, outside.near), (Nearness::Measured, Nearness::Load));
        assert!(outside.tpot[0] <= inside.tpot[0] && outside.tpot[2] >= inside.tpot[2]);
        let long = Scenario { isl: Some(100_000), osl: Some(100), ..Scenario::default() };
        let long = self::problem("openai/gpt-oss-120b", "8xh100", "vllm", long);
        assert_eq!(long.prediction_intervals("mxfp4").aggregated.near, Nearness::Load);
    }

    #[test]
    fn layers_over_hosts_are_no_surer_than_what_was_never_measured() {
        let stated = Scenario { isl: Some(2048), osl: Some(128), ..Scenario::default() };
        let problem = problem("DeepSeek-R1", "16xh100-sxm", "sglang", stated).problem().unwrap();
        let inside = ParallelPlan { tp: 8, ..ParallelPlan::SINGLE };
        let over = ParallelPlan { tp: 16, ..ParallelPlan::SINGLE };
        let staged = ParallelPlan { pp: 2, ..inside };
        let classes = [inside, over, staged].map(|plan| problem.error_class(&plan, Offload::Nothing));
        assert_eq!(classes, [ErrorClass::Aggregated, ErrorClass::OverHosts, ErrorClass::Aggregated]);
        let pair = &problem.formats[0];
        let [near, far] = [classes[0], classes[1]].map(|class| pair.interval(class, 1).unwrap());
        assert_eq!(far.near, Nearness::Hosts);
        for (near, far) in [(near.ttft, far.ttft), (near.tpot, far.tpot), (near.throughput, far.throughput)] {
            assert!(far[0] <= near[0] && far[2] >= near[2]);
        }
    }

    #[test]
    fn what_a_processor_computes_has_the_errors_of_processors() {
        let stated = Scenario {
            host: Some("epyc-9355,ddr5-6000x12".into()),
            host_memory: Some("384 GB".into()),
            ..Scenario::default()
        };
        let problem = problem("Qwen3-235B-A22B", "1xrtx-4090", "llama.cpp", stated).problem().unwrap();
        let part = HostPart::parse("experts 90").unwrap();
        let class = problem.error_class(&ParallelPlan::SINGLE, Offload::Host(part));
        let pair = &problem.formats[0];
        let [device, one, more] = [(ErrorClass::Aggregated, 1), (class, 1), (class, 2)]
            .map(|(of, at)| pair.interval(of, at).unwrap());
        assert_eq!((class, one.near), (ErrorClass::OnProcessor, Nearness::Processor));
        assert!(one.tpot[2] > device.tpot[2] && more.tpot[2] >= one.tpot[2]);
        let alone = self::problem("Llama-3.1-8B", "epyc-9355", "llama.cpp", Scenario::default());
        let alone = alone.prediction_intervals("gguf-q4_k_m");
        assert_eq!((alone.aggregated.near, &alone.aggregated.tpot), (Nearness::Processor, &one.tpot));
    }

    #[test]
    fn small_devices_are_set_up_for_less() {
        let of = |hardware: &str, runtime: &str| {
            let resolved = problem("Llama-3.1-8B", hardware, runtime, Scenario::default());
            let taken = resolved.runtime.taken(&resolved.cluster.device);
            (taken.max_batched_tokens.value, taken.max_sequences.map(|figure| figure.value))
        };
        assert_eq!(of("1xh100", "vllm"), (8192.0, Some(1024.0)));
        assert_eq!(of("1xrtx-4090", "vllm"), (2048.0, Some(256.0)));
        assert_eq!(of("1xa100-sxm-80gb", "vllm"), (2048.0, Some(256.0)));
        assert_eq!((of("1xb200-sxm", "sglang").0, of("1xh200-sxm", "sglang").0), (16384.0, 8192.0));
        assert_eq!(of("1xrtx-4090", "sglang"), (2048.0, None));
    }
}
