//! What forecasts are set against, as in the laboratory's `figure worth`.

use minerva_model::{CountedUse, EngineConfig, ForecastMode, GroupScale, SessionSource, Share};
use minerva_sim_world::{EngineSetup, OutlookSource};

/// What steers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arm {
    /// Nobody: weights stay equal.
    Equal,
    /// Malensek et al. 2016, section 2.1, as it stands there: ten groups by a moving average of bytes.
    Fennel,
    /// Minerva without forecasts: past use alone.
    History,
    /// Minerva with the tenant's last session in place of the forecast.
    LastValue,
    /// Minerva with the last session of the same name in place of the forecast, whichever tenant's it was.
    LastOfName,
    /// Minerva as it is.
    Forecasts,
    /// Minerva, when what is left of each session is known.
    Oracle,
}

impl Arm {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal weights",
            Self::Fennel => "Fennel",
            Self::History => "no forecasts",
            Self::LastValue => "last value",
            Self::LastOfName => "last of the name",
            Self::Forecasts => "forecasts",
            Self::Oracle => "oracle",
        }
    }

    /// The engine of this arm.
    pub(crate) fn engine(self, rotational: bool) -> Option<EngineSetup> {
        let mut config = EngineConfig::default();
        config.forecast.mode =
            if matches!(self, Self::Forecasts | Self::LastOfName) { ForecastMode::On } else { ForecastMode::Off };
        let outlook = match self {
            Self::Equal => return None,
            Self::Fennel | Self::History | Self::Forecasts | Self::LastOfName => OutlookSource::Engine,
            Self::LastValue => OutlookSource::LastValue,
            Self::Oracle => OutlookSource::Oracle,
        };
        match self {
            Self::Fennel => as_published(&mut config),
            Self::LastOfName => config.forecast.sessions = SessionSource::Last,
            _ => {}
        }
        Some(EngineSetup { config, rotational, outlook })
    }
}

/// What Minerva has beside the paper's is switched off.
fn as_published(config: &mut EngineConfig) {
    let fennel = &mut config.fennel;
    fennel.counted = CountedUse::Bytes;
    fennel.group_scale = GroupScale::Linear;
    fennel.long_term_weight = 0.0;
    fennel.share_heavy = Share::new(10);
    fennel.group_change_slices = 1;
    fennel.floor_permille = 0;
}
