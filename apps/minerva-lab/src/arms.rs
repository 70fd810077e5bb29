//! What Minerva is compared with, by name, and how each arm is set up.

use minerva_lab::contest::{BUFFERED, CONTESTS};
use minerva_lab::scene::{Arm, Equal, IoCostModel, Minervad, Steering, WithIoCost};

/// The names of all scenes in which it is.
pub(crate) const SCENES: [&str; 9] = {
    let (mut all, mut index) = ([BUFFERED; 9], 0);
    while index < CONTESTS.len() {
        all[index] = CONTESTS[index];
        index += 1;
    }
    all
};

/// The arms on cgroup v1, and on a disk with BFQ: elevators as the kernel ships them, BFQ without its `low_latency`, and Minerva on
/// BFQ as shipped.
pub(crate) const ARMS: [&str; 10] = [
    "mq-deadline",
    "kyber",
    UNSTEERED,
    "bfq",
    "bfq-low-0",
    STEERED,
    "minerva-strict",
    "minerva-not-strict",
    "minerva-low-by-use",
    "minerva-low-0",
];

/// Minerva on BFQ as shipped. The further four are shown beside it and judged by nothing: with `strict_guarantees = true` in its
/// file, with `strict_guarantees_by_use = false`, with `low_latency_by_use = true`, and on BFQ with `low_latency` 0.
pub(crate) const STEERED: &str = "minerva";

/// Arms of what forecasts are worth: equal weights, Fennel as the paper has it, Minerva without forecasts, with the last session of the
/// same name in place of the forecast, BFQ as shipped, Minerva with forecasts, and an oracle that knows the sizes.
pub(crate) const WORTH: [&str; 7] = ["equal", "fennel", "minerva-off", "minerva-last", "kernel", "minerva", "oracle"];

/// What came before sessions that start together: sessions of the same names, of the same looks without names, none like them.
pub(crate) const LIKE: [&str; 3] = ["named", "unnamed", "unseen"];

/// No elevator, and nobody who steers.
pub(crate) const UNSTEERED: &str = "none";

/// The arms on cgroup v2: elevators as the kernel ships them, BFQ without its `low_latency`, Minerva on BFQ as shipped, and those of
/// [`WITHOUT_ELEVATOR`].
pub(crate) const ARMS_V2: [&str; 9] = [
    "mq-deadline",
    "kyber",
    UNSTEERED,
    "bfq",
    "bfq-low-0",
    STEERED,
    WITHOUT_ELEVATOR[0],
    WITHOUT_ELEVATOR[1],
    WITHOUT_ELEVATOR[2],
];

/// On a disk without an elevator, as most hosts with NVMe have: iocost with equal weights on a disk that was measured for it, and Minerva
/// through iocost and through caps.
const WITHOUT_ELEVATOR: [&str; 3] = ["iocost", "minerva-iocost", "minerva-max"];

/// Of [`ARMS_V2`], Minerva's.
pub(crate) const STEERED_V2: [&str; 3] = [STEERED, WITHOUT_ELEVATOR[1], WITHOUT_ELEVATOR[2]];

/// All names.
pub(crate) const ALL_ARMS: [&str; 13] = {
    let (mut all, mut index) = ([UNSTEERED; 13], 0);
    while index < all.len() {
        all[index] = if index < ARMS.len() { ARMS[index] } else { WITHOUT_ELEVATOR[index - ARMS.len()] };
        index += 1;
    }
    all
};

/// Whether the arm's disk has no elevator.
pub(crate) fn is_without_elevator(name: &str) -> bool {
    name == UNSTEERED || WITHOUT_ELEVATOR.contains(&name)
}

/// The arm of this name, with this daemon and what its file says of the disk added; with what iocost is to know of the disk, where it was measured.
pub(crate) fn arm(name: &str, daemon: &Minervad, model: Option<IoCostModel>) -> Arm {
    let steering: Box<dyn Steering> = if name.starts_with(STEERED) {
        let disk_keys = match name {
            "minerva-strict" => "strict_guarantees = true",
            "minerva-not-strict" => "strict_guarantees_by_use = false",
            "minerva-low-by-use" => "low_latency_by_use = true",
            "minerva-iocost" => "back_end = \"iocost\"",
            "minerva-max" => "back_end = \"max\"",
            _ => "",
        };
        Box::new(Minervad { disk_keys: disk_keys.to_owned(), ..daemon.clone() })
    } else {
        Box::new(Equal)
    };
    let steering = match model.filter(|_| name.ends_with("iocost")) {
        Some(model) => Box::new(WithIoCost { model, steering }),
        None => steering,
    };
    let elevator = match name {
        name if is_without_elevator(name) => UNSTEERED,
        name if name.starts_with("bfq") || name.starts_with(STEERED) => "bfq",
        elevator => elevator,
    };
    Arm { name: name.to_owned(), elevator: elevator.to_owned(), low_latency: !name.ends_with("-low-0"), steering }
}

#[cfg(test)]
mod tests {
    use super::{ALL_ARMS, ARMS, ARMS_V2, arm};
    use minerva_lab::scene::Minervad;
    use std::collections::BTreeSet;

    #[test]
    fn every_arm_has_a_name_of_its_own_and_an_elevator() {
        let names: BTreeSet<&str> = ARMS.into_iter().chain(ARMS_V2).collect();
        assert_eq!(names, BTreeSet::from(ALL_ARMS));
        let daemon = Minervad::new("minervad".into(), 1000);
        let elevator = |name: &str| arm(name, &daemon, None).elevator;
        for (name, expected) in [("bfq-low-0", "bfq"), ("minerva-low-0", "bfq"), ("minerva", "bfq"), ("kyber", "kyber")]
        {
            assert_eq!(elevator(name), expected);
        }
        for name in ["none", "iocost", "minerva-iocost", "minerva-max"] {
            assert_eq!(elevator(name), "none");
        }
        assert!(!arm("minerva-low-0", &daemon, None).low_latency);
    }
}
