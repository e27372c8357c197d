//! Laws of the text that leaves: nothing that others wrote is executed.
