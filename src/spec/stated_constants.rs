//! Efficiencies and overheads that the file of a device states: they replace those of the runtime.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::constant::{CONSTANTS, CalibratedConstant};
use super::error::Error;
use super::figure::{Figure, Ratio, Seconds};
use super::limits::EFFICIENCY;
use crate::quantity::datum::Datum;

/// Declares the constants that a device may state, each with its dimension.
macro_rules! stated_constants {
    ($($(#[$doc:meta])* $Name:ident $key:ident $Dimension:ident,)*) => {
        /// Constants of a device in place of the runtime's; none in the files of the catalogue.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct StatedConstants {
            $($(#[$doc])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $key: Option<Figure<$Dimension>>,)*
            /// Fraction of the dense peak that the matrix products of a decode step reach.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub decode_compute: Option<Figure<Ratio>>,
        }

        impl StatedConstants {
            /// The stated figure of a constant of the runtime.
            pub fn datum(&self, of: CalibratedConstant) -> Option<Datum> {
                match of {
                    $(CalibratedConstant::$Name => {
                        self.$key.as_ref().map(|figure| figure.datum(of.entry().key))
                    })*
                    _ => None,
                }
            }
        }
    };
}

stated_constants! {
    /// Fraction of the dense peak that large matrix products reach.
    GemmCompute gemm_compute Ratio,
    /// Fraction of the bandwidth that matrix products reach.
    GemmMemory gemm_memory Ratio,
    /// Fraction of the dense peak that prefill attention reaches.
    AttentionCompute attention_compute Ratio,
    /// Fraction of the bandwidth that decode attention reaches.
    AttentionMemory attention_memory Ratio,
    /// Fraction of the dense peak that grouped expert products reach.
    MoeCompute moe_compute Ratio,
    /// Fraction of the bandwidth that grouped expert products reach.
    MoeMemory moe_memory Ratio,
    /// Delay between the kernels of a layer.
    LaunchPerLayer launch_per_layer Seconds,
    /// Launch time per kernel of a layer.
    KernelLaunch kernel_launch Seconds,
    /// Additional time per quantised matrix product.
    QuantisedLaunch quantised_launch Seconds,
    /// Routing time per expert layer.
    ExpertsLaunch experts_launch Seconds,
    /// Host time between steps.
    HostPerStep host_per_step Seconds,
    /// Base latency of a collective, independent of its size.
    CollectiveLatency collective_latency Seconds,
}

impl StatedConstants {
    /// Whether the file states none.
    pub fn is_empty(&self) -> bool {
        *self == StatedConstants::default()
    }

    pub fn check(&self) -> Result<(), Error> {
        let of_table = CONSTANTS.iter().filter(|entry| entry.is_efficiency());
        let of_table = of_table.filter_map(|entry| Some((entry.key, self.datum(entry.of)?.value)));
        let of_decode = self.decode_compute.iter().map(|figure| ("decode_compute", figure.value));
        let mut all = of_table.chain(of_decode);
        all.try_for_each(|(key, value)| EFFICIENCY.check(&format!("constants.{key}"), value))
    }
}
