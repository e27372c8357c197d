//! The degrees of parallelism of a pool: one table, over which flags, plans, labels, settings and rules loop.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares the degrees that a user states as numbers, in the order of plans.
macro_rules! degrees {
    (
        $($Degree:ident $key:ident $about:literal,)*
        ; sp $about_sp:literal, stages $about_stages:literal, replicas $about_replicas:literal,
    ) => {
        /// A degree of a plan.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Degree {
            $(#[doc = $about] $Degree,)*
            /// Sequence parallelism: 2 where used, else 1.
            Sp,
            /// Devices of the worker.
            Devices,
        }

        const STATED: &[(Degree, &str, &str)] = &[$((Degree::$Degree, stringify!($key), $about),)*];

        /// The degrees of one replica, and the number of replicas. Those that are not stated follow from the others.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Degrees {
            $(#[doc = $about]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $key: Option<u64>,)*
            #[doc = $about_sp]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub sp: Option<bool>,
            #[doc = $about_stages]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub stages: Option<Vec<u32>>,
            #[doc = $about_replicas]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub replicas: Option<u64>,
        }

        impl Degrees {
            /// Help of the flags that are no number of ranks: `sp`, `stages`, `replicas`.
            pub const OTHERS: [&str; 3] = [$about_sp, $about_stages, $about_replicas];

            /// A degree that is stated as a number.
            pub fn get(&self, degree: Degree) -> Option<u64> {
                match degree {
                    $(Degree::$Degree => self.$key,)*
                    Degree::Sp | Degree::Devices => None,
                }
            }

            /// Where a degree is stated as a number.
            pub fn get_mut(&mut self, degree: Degree) -> Option<&mut Option<u64>> {
                match degree {
                    $(Degree::$Degree => Some(&mut self.$key),)*
                    Degree::Sp | Degree::Devices => None,
                }
            }
        }
    };
}

degrees! {
    Tp tp "Tensor parallelism: attention heads and dense layers",
    Pp pp "Pipeline parallelism: layers",
    Dp dp "Attention data parallelism: sequences",
    Cp cp "Context parallelism: tokens of the prompt and of the KV cache",
    Dcp dcp "Decode context parallelism: tokens of the KV cache, inside the tp ranks",
    Ep ep "Expert parallelism: experts",
    MoeTp moe_tp "Tensor parallelism inside experts [default: tp x cp x dp / ep]",
    FfnTp ffn_tp "Tensor parallelism of dense feed-forward layers and shared experts [default: tp]",
    VocabTp vocab_tp "Tensor parallelism of the embedding and the LM head [default: tp]",
    ; sp "Sequence parallelism: norms and residuals sharded by token over the tp ranks",
    stages "Layers of each pipeline stage, first to last, e.g. 20,12 [default: balanced]",
    replicas "Number of replicas or workers",
}

impl Degree {
    /// Number of degrees that a rule can bound.
    pub const COUNT: usize = Degree::Devices as usize + 1;

    /// The degrees that a user states as numbers, in the order of plans.
    pub fn stated() -> impl Iterator<Item = Degree> {
        STATED.iter().map(|(degree, ..)| *degree)
    }

    /// Its key in files and plans.
    pub fn key(self) -> &'static str {
        match self {
            Degree::Sp => "sp",
            Degree::Devices => "devices",
            stated => STATED[stated as usize].1,
        }
    }

    /// Its name as a flag, without the dashes before it.
    pub fn flag(self) -> String {
        self.key().replace('_', "-")
    }

    /// Its meaning, for help.
    pub fn about(self) -> &'static str {
        STATED.get(self as usize).map_or("", |(.., about)| about)
    }
}

impl Degrees {
    /// Whether any degree is set.
    pub fn is_stated(&self) -> bool {
        *self != Degrees::default()
    }

    /// These degrees; unset ones come from `other`.
    pub fn or(mut self, other: Degrees) -> Degrees {
        for degree in Degree::stated() {
            if let Some(slot) = self.get_mut(degree) {
                *slot = slot.or(other.get(degree));
            }
        }
        let (sp, replicas) = (self.sp.or(other.sp), self.replicas.or(other.replicas));
        Degrees { sp, replicas, stages: self.stages.take().or(other.stages), ..self }
    }
}
