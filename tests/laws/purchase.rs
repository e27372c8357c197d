//! Laws of recommendations, remedies and costs.
