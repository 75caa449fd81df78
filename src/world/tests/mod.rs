//! The snapshot from small facts: each rule of the judge, the ladder, groups, listing and counting, one table each.

mod counting;
mod ended;
mod gpu;
mod ladder;
mod listing;
mod nodes;
mod routers;
mod states;
