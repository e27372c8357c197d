//! Laws of manifests.
