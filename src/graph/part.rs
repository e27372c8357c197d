//! Parts that architectures share: attention, feed-forward networks, the layer, the whole model.
//!
//! A family states parts; equal layers become one block. Knows no `model_type`.

pub mod attention;
pub mod cross;
pub mod encoder;
pub mod feed_forward;
pub mod indexer;
pub mod latent;
pub mod layer;
pub mod moe;
pub mod names;
pub mod whole;
pub mod window;
