//! The binary: hands the arguments over to one command and ends with its exit code.

fn main() {}
