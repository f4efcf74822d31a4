//! Reference codecs of the quantised block formats.
