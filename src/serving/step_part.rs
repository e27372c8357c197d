//! Parts of a step, and its waits outside the layers, as an observer sees them.

/// A part of a step. What an observer sees belongs to the last part that was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepPart {
    /// The host, before the step.
    Host,
    /// The draft, on the devices of the last pipeline stage: before a decode step, after a prefill.
    Draft,
    /// The embedding, on the first pipeline stage.
    Embedding,
    /// The image encoder, on the first pipeline stage.
    Images,
    /// One layer of the block at this index.
    Layer {
        /// Index of the block.
        block: usize,
        /// Part of the layer is in host memory.
        hosted: bool,
    },
    /// The head, on the last pipeline stage.
    Head,
}

/// Reason of a wait outside the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// Transfer of activations to the next pipeline stage; each stage but the last waits.
    Handover,
    /// The host prepares further chunks of a prompt.
    Chunks,
    /// Offloaded data is read over the host link; each stage waits for its part.
    HostRead,
}

/// A wait of a step outside its layers.
#[derive(Clone, Copy, Debug)]
pub struct Wait<T> {
    /// Its reason.
    pub kind: WaitKind,
    /// How often the step waits.
    pub times: u64,
    /// Time of one wait.
    pub time: T,
    /// Bytes that a device sends during one wait.
    pub wire: T,
}
