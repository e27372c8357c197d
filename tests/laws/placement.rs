//! Laws of placements and of the local machine.
