//! Laws of the command line: every set of flags ends in an answer or an error.
