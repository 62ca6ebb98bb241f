//! The desk with scripted models: each command does what it says.
