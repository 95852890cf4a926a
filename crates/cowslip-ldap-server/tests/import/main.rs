//! LDIF in and out: what other servers write, what is rejected, and that nothing gets lost on a round trip.

mod cases;
mod products;
mod round_trip;
mod support;
