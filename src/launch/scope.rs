//! The scope of an option's number: settings count one scheduler, options also count all of them, or one micro-batch.

use super::settings::{SettingValue, Settings};
use crate::spec::launch::{Launch, LaunchOption, OptionScope};
use crate::spec::setting::Setting;

impl OptionScope {
    /// The number that an option states for `number` of each scheduler.
    fn stated(self, number: u64, settings: &Settings) -> u64 {
        match self {
            OptionScope::Rank => number,
            OptionScope::Replica => number.saturating_mul(schedulers(settings)),
            OptionScope::MicroBatch => number.div_ceil(stages(settings)),
        }
    }

    /// The number of each scheduler where an option states `number`.
    fn of_a_scheduler(self, number: u64, settings: &Settings) -> u64 {
        match self {
            OptionScope::Rank => number,
            OptionScope::Replica => (number / schedulers(settings)).max(1),
            OptionScope::MicroBatch => number.saturating_mul(stages(settings)),
        }
    }
}

/// Schedulers of a replica: its attention data-parallel ranks.
fn schedulers(settings: &Settings) -> u64 {
    let of = |setting| settings.count(setting).filter(|_| settings.is_on(Setting::AttentionDp));
    let ranks = || of(Setting::Copies).or(of(Setting::Ranks));
    settings.count(Setting::Dp).or_else(ranks).unwrap_or(1).max(1)
}

fn stages(settings: &Settings) -> u64 {
    settings.count(Setting::Pp).unwrap_or(1).max(1)
}

/// The value of `option` as it is stated.
pub(super) fn stated(option: &LaunchOption, value: &SettingValue, settings: &Settings) -> SettingValue {
    match value {
        SettingValue::Count(number) => SettingValue::Count(option.scope.stated(*number, settings)),
        other => other.clone(),
    }
}

/// The part of a default that one scheduler takes, where the option's number is that of all of them and there are several.
pub fn divided_default(launch: &Launch, setting: Setting, number: u64, settings: &Settings) -> Option<u64> {
    let option = launch.settings.iter().find(|option| option.setting == setting)?;
    let divided = option.scope == OptionScope::Replica && schedulers(settings) > 1;
    divided.then(|| option.scope.of_a_scheduler(number, settings))
}

/// Turns numbers as options state them into those of a scheduler, when the degrees of all options are known.
pub(super) fn to_schedulers(launch: &Launch, settings: &mut Settings) {
    let mut seen = Vec::new();
    for option in launch.settings.iter().filter(|option| option.scope != OptionScope::Rank) {
        // Another spelling of the same number has the same scope.
        if seen.contains(&option.setting) {
            continue;
        }
        seen.push(option.setting);
        if let Some(number) = settings.count(option.setting) {
            let own = option.scope.of_a_scheduler(number, settings);
            settings.set(option.setting, SettingValue::Count(own));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What SGLang 0.5.23 admits on each of `dp` ranks: `requested_per_worker` of kv_cache_configurator.py.
    fn sglang_admits(max_running_requests: u64, dp: u64) -> u64 {
        (max_running_requests / dp).max(1)
    }

    /// The chunk of each rank: `chunked_prefill_size // attn_dp_size` of parallel_hook.py.
    fn sglang_chunk(chunked_prefill_size: u64, dp: u64) -> u64 {
        chunked_prefill_size / dp
    }

    /// The requests in flight of TensorRT-LLM: `max_batch_size * pp_size` of pyexecutor/_util.py.
    fn trtllm_admits(max_batch_size: u64, pp: u64) -> u64 {
        max_batch_size * pp
    }

    fn settings(dp: u64, pp: u64) -> Settings {
        let mut settings = Settings::default();
        settings.degree(Setting::Dp, dp);
        settings.degree(Setting::Pp, pp);
        settings
    }

    #[test]
    fn the_load_of_a_published_case_is_a_total() {
        // DeepSeek-R1, dp8 ep8 @256: 32 requests and 8,192 tokens of each rank.
        let eight = settings(8, 1);
        assert_eq!(OptionScope::Replica.stated(32, &eight), 256);
        assert_eq!(OptionScope::Replica.stated(8192, &eight), 65_536);
    }

    proptest! {
        #[test]
        fn a_server_admits_the_load_of_the_plan(number in 1u64..5000, dp in 1u64..64, pp in 1u64..16) {
            let of = settings(dp, pp);
            let total = OptionScope::Replica.stated(number, &of);
            prop_assert_eq!(sglang_admits(total, dp), number);
            prop_assert_eq!(sglang_chunk(total, dp), number);
            prop_assert_eq!(OptionScope::Replica.of_a_scheduler(total, &of), number);
            let batch = OptionScope::MicroBatch.stated(number, &of);
            let admitted = trtllm_admits(batch, pp);
            prop_assert!((number..number + pp).contains(&admitted));
            prop_assert_eq!(OptionScope::MicroBatch.of_a_scheduler(batch, &of), admitted);
        }

        #[test]
        fn a_stated_total_is_divided_as_the_runtime_does(total in 1u64..5000, dp in 1u64..64) {
            prop_assert_eq!(OptionScope::Replica.of_a_scheduler(total, &settings(dp, 1)), sglang_admits(total, dp));
        }
    }
}
