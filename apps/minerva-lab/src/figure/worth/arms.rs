//! What forecasts are set against.

use crate::arms::WORTH;
use minerva_lab::scene::{Arm as OnElevator, Equal, Known, Minervad, Steering};
use std::path::{Path, PathBuf};

/// Who steers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Arm {
    /// Nobody: equal weights, BFQ without `low_latency`.
    Equal,
    /// Malensek et al. 2016, section 2.1, as it stands there: ten groups by a moving average of bytes.
    Fennel,
    /// Minerva with forecasts off.
    Off,
    /// Minerva with the last session of the same name in place of the forecast.
    Last,
    /// BFQ as the kernel ships it.
    Kernel,
    /// Minerva with forecasts on.
    Forecasts,
    /// The sizes are known.
    Oracle,
}

impl Arm {
    pub(crate) const ALL: [Self; 7] =
        [Self::Equal, Self::Fennel, Self::Off, Self::Last, Self::Kernel, Self::Forecasts, Self::Oracle];
    /// Those of the scene of bursts: nobody knows a size there.
    pub(crate) const OF_BURSTS: [Self; 3] = [Self::Equal, Self::Off, Self::Forecasts];

    pub(crate) const fn name(self) -> &'static str {
        WORTH[self as usize]
    }

    /// Who steers in this arm; a daemon begins with what one before it kept in `recalls`.
    pub(crate) fn steering(self, daemon: &Path, recalls: Option<&Path>) -> Box<dyn Steering> {
        let sections = match self {
            Self::Equal => return Box::new(Equal),
            Self::Kernel => return self.on_bfq(true, Box::new(Equal)),
            Self::Oracle => return Box::new(Known),
            Self::Fennel => concat!(
                "[forecast]\nmode = \"off\"\n",
                "[fennel]\nuse = \"bytes\"\ngroup_scale = \"linear\"\nlong_term_weight = 0.0\nshare_heavy = 10\ngroup_change_slices = 1\n",
                "floor_permille = 0\n"
            ),
            Self::Off => "[forecast]\nmode = \"off\"\n",
            Self::Last => "[forecast]\nmode = \"on\"\nsessions = \"last\"\n",
            Self::Forecasts => FORECASTS_ON,
        };
        let recalls = recalls.map(Path::to_owned);
        let steering =
            Minervad { sections: sections.to_owned(), recalls, ..Minervad::new(daemon.to_owned(), SLICE_MS) };
        self.on_bfq(false, Box::new(steering))
    }

    fn on_bfq(self, low_latency: bool, steering: Box<dyn Steering>) -> Box<dyn Steering> {
        let (name, elevator) = (self.name().to_owned(), "bfq".to_owned());
        Box::new(OnElevator { name, elevator, low_latency, steering })
    }
}

/// The daemon's slice: times are scaled as bytes are, but a forecast looks back a second. It is the same in every arm.
const SLICE_MS: u64 = 250;
/// What makes shares go by forecasts.
const FORECASTS_ON: &str = "[forecast]\nmode = \"on\"\n";

/// The daemon that learns before; what it learnt is in `keeps` when it has ended.
pub(crate) fn learning(daemon: &Path, keeps: PathBuf) -> Minervad {
    let (sections, keeps) = (FORECASTS_ON.to_owned(), Some(keeps));
    Minervad { sections, keeps, ..Minervad::new(daemon.to_owned(), SLICE_MS) }
}
