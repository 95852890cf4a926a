//! LDIF in and out: what other servers write, what is rejected, and that nothing gets lost on a round trip.

mod cases;
mod check;
mod products;
mod property;
mod round_trip;
mod support;
