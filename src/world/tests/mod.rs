//! The snapshot from small facts: each rule of the judge, the ladder, groups, listing and counting, one table each.

mod counting;
mod ladder;
mod listing;
mod states;
