//! Plays pairs, and keeps what came of each run.

use super::arms::Arm;
use crate::binaries;
use crate::worth_cli::RunsArguments;
use anyhow::Context as _;
use minerva_lab::scene::{RunResult, Stage};
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// What came of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Played {
    pub(crate) scene: String,
    pub(crate) profile: String,
    /// What was known of it before.
    pub(crate) like: String,
    pub(crate) scale: f64,
    /// Seed of the pair.
    pub(crate) pair: u64,
    pub(crate) arm: String,
    /// For each tenant: seconds to its end, or megabytes a second, and then those while all are at work.
    pub(crate) values: Vec<f64>,
    pub(crate) disk_mb_per_s: f64,
}

/// One of the runs that are to be played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Which<'a> {
    pub(crate) scene: &'a str,
    pub(crate) profile: &'a str,
    pub(crate) like: &'a str,
    pub(crate) pair: u64,
}

/// All that was played, in this run of the program and in those before it that used the same folder.
pub(crate) struct Book {
    folder: Folder,
    scale: f64,
    pub(crate) played: Vec<Played>,
    /// How many may still be played.
    left: usize,
    pub(crate) daemon: PathBuf,
    pub(crate) seed: u64,
}

/// Where runs are kept, or until when.
enum Folder {
    Kept(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Folder {
    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }
}

impl Book {
    pub(crate) fn open(arguments: &RunsArguments) -> anyhow::Result<Self> {
        let scale = arguments.scale;
        anyhow::ensure!(scale > 0.0 && scale <= 1.0, "a scale of {scale} is not possible: use one above 0, up to 1");
        let folder = match &arguments.folder {
            Some(path) => {
                std::fs::create_dir_all(path).with_context(|| format!("failed to make {}", path.display()))?;
                Folder::Kept(path.clone())
            }
            None => Folder::Temporary(tempfile::tempdir().context("failed to make a folder for the runs")?),
        };
        let runs = folder.path().join(RUNS);
        let text = if runs.exists() {
            std::fs::read_to_string(&runs).with_context(|| format!("failed to read {}", runs.display()))?
        } else {
            String::new()
        };
        let played = text.lines().enumerate().map(|(number, line)| {
            let place = || format!("{}:{}: this line is not a run; remove it", runs.display(), number + 1);
            serde_json::from_str(line).with_context(place)
        });
        Ok(Self {
            scale,
            played: played.collect::<anyhow::Result<_>>()?,
            left: arguments.runs_max.unwrap_or(usize::MAX),
            daemon: binaries::minervad(&arguments.output)?,
            seed: crate::figure::drawn_seed(arguments.seed),
            folder,
        })
    }

    /// The seeds of the pairs.
    pub(crate) fn pairs(&self, count: u64) -> impl Iterator<Item = u64> + use<> {
        let seed = self.seed;
        (0..count).map(move |pair| seed.wrapping_mul(1000).wrapping_add(pair))
    }

    /// The pairs of which something was played, in order.
    pub(crate) fn all_pairs(&self) -> std::collections::BTreeSet<u64> {
        self.played.iter().map(|played| played.pair).collect()
    }

    /// The arms of a pair that are still to be played, in an order that its seed draws.
    pub(crate) fn open_arms(&self, which: Which<'_>, arms: &[Arm]) -> Vec<Arm> {
        let mut arms = arms.to_vec();
        fastrand::Rng::with_seed(which.pair ^ 0x0DE4).shuffle(&mut arms);
        arms.retain(|arm| self.find(which, *arm).is_none());
        arms
    }

    pub(crate) fn find(&self, which: Which<'_>, arm: Arm) -> Option<&Played> {
        self.find_named(which, arm.name())
    }

    /// What each tenant of a pair has alone, if that was measured.
    pub(crate) fn alone(&self, which: Which<'_>) -> Option<&[f64]> {
        self.find_named(which, ALONE).map(|played| played.values.as_slice())
    }

    fn find_named(&self, which: Which<'_>, name: &str) -> Option<&Played> {
        let is = |played: &&Played| {
            let Played { scene, profile, like, scale, pair, arm: of, .. } = played;
            (scene.as_str(), profile.as_str(), like.as_str(), *pair)
                == (which.scene, which.profile, which.like, which.pair)
                && of == name
                && (scale - self.scale).abs() < 1e-9
        };
        self.played.iter().find(is)
    }

    /// Whether another may be played this time.
    pub(crate) fn take_one(&mut self) -> bool {
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }

    /// Where what was learnt before a pair is kept.
    pub(crate) fn learnt(&self, which: Which<'_>) -> PathBuf {
        self.folder.path().join(format!("{}-{}-{}", which.profile, which.like, which.pair))
    }

    /// Enters a run, at once also in the folder.
    pub(crate) fn enter(&mut self, which: Which<'_>, arm: Arm, values: Vec<f64>, disk: f64) -> anyhow::Result<()> {
        self.enter_named(which, arm.name(), values, disk)
    }

    /// Enters what each tenant of a pair has alone, for all of its arms.
    pub(crate) fn enter_alone(&mut self, which: Which<'_>, values: Vec<f64>) -> anyhow::Result<()> {
        self.enter_named(which, ALONE, values, 0.0)
    }

    fn enter_named(&mut self, which: Which<'_>, name: &str, values: Vec<f64>, disk: f64) -> anyhow::Result<()> {
        let played = Played {
            scene: which.scene.to_owned(),
            profile: which.profile.to_owned(),
            like: which.like.to_owned(),
            scale: self.scale,
            pair: which.pair,
            arm: name.to_owned(),
            values,
            disk_mb_per_s: disk,
        };
        let path = self.folder.path().join(RUNS);
        let failed = || format!("failed to write {}", path.display());
        let mut file = std::fs::File::options().create(true).append(true).open(&path).with_context(failed)?;
        writeln!(file, "{}", serde_json::to_string(&played)?).with_context(failed)?;
        self.played.push(played);
        Ok(())
    }
}

/// In place of an arm: each tenant by itself.
const ALONE: &str = "alone";
/// Every run, a line each.
const RUNS: &str = "runs.jsonl";

/// Says what came of a run.
pub(crate) fn tell(stage: &Stage<'_>, which: Which<'_>, arm: Arm, run: &RunResult) {
    let ends: Vec<String> = run.tenants.iter().map(|tenant| format!("{:.1}", tenant.completion_s)).collect();
    let (disk, ends) = (run.disk_mb_per_s, ends.join(" "));
    eprintln!(
        "{}, {}, pair {}, {}: done after {ends} s, disk {disk:.1} MB/s",
        stage.profile,
        which.like,
        which.pair,
        arm.name()
    );
}

#[cfg(test)]
mod tests {
    use super::{Arm, Book, Folder, Which};

    impl Book {
        /// In which nothing was played.
        pub(crate) fn empty() -> Self {
            let folder = Folder::Temporary(tempfile::tempdir().expect("a folder"));
            Self { folder, scale: 1.0, played: Vec::new(), left: 0, daemon: "minervad".into(), seed: 1 }
        }
    }

    #[test]
    fn what_each_has_alone_is_kept_for_all_arms_of_its_pair() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut book = Book {
            folder: Folder::Kept(folder.path().to_owned()),
            scale: 1.0,
            played: Vec::new(),
            left: 1,
            daemon: "minervad".into(),
            seed: 1,
        };
        let which = |pair| Which { scene: "interleave", profile: "sata-ssd", like: "9s", pair };
        book.enter_alone(which(7), vec![1e6, 2e6]).expect("written");
        assert_eq!(book.alone(which(7)), Some([1e6, 2e6].as_slice()));
        assert_eq!((book.alone(which(8)), book.find(which(7), Arm::Equal)), (None, None));
        // It goes on where it stopped.
        let text = std::fs::read_to_string(folder.path().join(super::RUNS)).expect("runs");
        assert!(text.contains(r#""arm":"alone""#), "{text}");
    }
}
