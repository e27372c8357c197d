//! Laws of one plan per answer: headline, launch files, formats and context agree.
