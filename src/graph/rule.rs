//! Update rules of recurrent states: linear attention, state-space models and gated recurrences.
//!
//! Defines operations per element and inputs per token. Their cost on a device is computed elsewhere.

/// How a token updates and reads the state of a head with `key_dim × value_dim` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecurrenceRule {
    /// One decay per element: Mamba-1, whose heads are channels with values of one element.
    Selective,
    /// One decay per head: Mamba-2 (SSD) and, without a step, lightning attention.
    Decay,
    /// One decay per head, and removal of the key's old value first: gated DeltaNet.
    Delta,
    /// One decay per key channel, with the same correction: Kimi Delta Attention.
    ChannelDelta,
    /// A gated decay of one number per channel, without keys: RG-LRU.
    Gated,
}

impl RecurrenceRule {
    /// Operations per state element and token, in the token-by-token form.
    ///
    /// `Selective`: the decay's product and exponential, the step's product, decaying, adding, and a multiply-add to
    /// read. `Decay`: decaying, one multiply-add to write and one to read. `Delta` and `ChannelDelta`: one more
    /// multiply-add, which reads the old value. `Gated`: two sigmoids (4 each); a product and an exponential for the
    /// decay; a square, its difference from 1 and the root of the difference to scale the input; gating, scaling,
    /// decaying, adding.
    pub const fn step_flops(self) -> u64 {
        match self {
            RecurrenceRule::Selective | RecurrenceRule::Delta | RecurrenceRule::ChannelDelta => 7,
            RecurrenceRule::Decay => 5,
            RecurrenceRule::Gated => 17,
        }
    }

    /// Whether its prefill has a chunked form with matrix products. Otherwise it runs token by token.
    pub const fn chunks(self) -> bool {
        matches!(self, RecurrenceRule::Decay | RecurrenceRule::Delta | RecurrenceRule::ChannelDelta)
    }

    /// Whether the old value of a key is removed before the new one is written.
    pub const fn corrects(self) -> bool {
        matches!(self, RecurrenceRule::Delta | RecurrenceRule::ChannelDelta)
    }

    /// Whether tokens have keys and queries.
    pub const fn keys(self) -> bool {
        !matches!(self, RecurrenceRule::Gated)
    }

    /// Its name in inspections.
    pub const fn name(self) -> &'static str {
        match self {
            RecurrenceRule::Selective => "selective_scan",
            RecurrenceRule::Decay => "state_space_duality",
            RecurrenceRule::Delta => "gated_delta_rule",
            RecurrenceRule::ChannelDelta => "kimi_delta_rule",
            RecurrenceRule::Gated => "gated_linear_recurrence",
        }
    }
}

/// Gates and activation fused with a short convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvForm {
    /// Nothing (RecurrentGemma).
    Plain,
    /// SiLU after it (Mamba, DeltaNet).
    Activated,
    /// A product with one gate before it and with another after it (LFM2).
    Gated,
}

impl ConvForm {
    /// Operations per channel and token in addition to the convolution. SiLU counts as 5, as in gated activations.
    pub const fn flops(self) -> u64 {
        match self {
            ConvForm::Plain => 0,
            ConvForm::Activated => 5,
            ConvForm::Gated => 2,
        }
    }

    /// Elements read per channel and token: the convolution's input, and its gates.
    pub const fn inputs(self) -> u64 {
        match self {
            ConvForm::Plain | ConvForm::Activated => 1,
            ConvForm::Gated => 3,
        }
    }
}
