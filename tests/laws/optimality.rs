//! Laws of optimality and infeasibility: a larger space is never worse.
