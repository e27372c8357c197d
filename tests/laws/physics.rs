//! Laws of the work, the links and the load that are priced.
