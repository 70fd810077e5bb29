//! `minerva-conformance`: the simulator against the real kernel, and against `minerva-blk`.

mod blk_agrees;
mod judged;
mod selection;
mod sim_agrees;

use blk_agrees::BlkAgrees;
use clap::{Parser, Subcommand};
use selection::Selection;

/// Runs the same jobs on the simulator and for real, over an emulated disk.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures a figure.
    Figure {
        #[command(subcommand)]
        figure: Figure,
    },
}

#[derive(Subcommand)]
enum Figure {
    /// How far the simulator is from the kernel: throughput, shares, 99th percentile.
    SimAgrees(Selection),
    /// How far the simulator is from `minerva-blk` under the same scheduler; beside it, what the kernel's elevator does.
    BlkAgrees(BlkAgrees),
}

fn main() -> anyhow::Result<()> {
    let Arguments { command: Command::Figure { figure } } = Arguments::parse();
    let met = match figure {
        Figure::SimAgrees(options) => sim_agrees::run(&options)?,
        Figure::BlkAgrees(options) => blk_agrees::run(&options)?,
    };
    std::process::exit(i32::from(!met));
}

#[cfg(test)]
mod tests {
    use super::{Arguments, Command, Figure};
    use crate::selection::chosen;
    use clap::Parser as _;
    use minerva_blocksched::SchedulerName;
    use minerva_conformance::job::{Job, QUICK, jobs, once_held_out};

    /// Name and jobs of each set.
    fn sets(arguments: &str) -> anyhow::Result<Vec<(String, Vec<Job>)>> {
        let words = ["minerva-conformance", "figure", "sim-agrees"].into_iter().chain(arguments.split_whitespace());
        let Arguments { command: Command::Figure { figure: Figure::SimAgrees(options) } } =
            Arguments::try_parse_from(words)?
        else {
            panic!("another figure");
        };
        Ok(chosen(&options)?.into_iter().map(|set| (set.name, set.jobs)).collect())
    }

    #[test]
    fn every_run_draws_held_out_jobs_behind_the_suite_and_a_seed_repeats_them() {
        let drawn = sets("--draw 5").unwrap();
        assert_eq!((drawn.len(), &drawn[0].1, drawn[1].1.len()), (2, &jobs(), 5));
        let seed = drawn[1].0.strip_prefix("held out, seed ").expect("the seed is told");
        assert_eq!(sets(&format!("--draw 5 --held-out --seed {seed}")).unwrap(), drawn[1..]);
        assert_ne!(sets("--draw 5 --held-out --seed 1").unwrap()[0].1, drawn[1].1);
    }

    #[test]
    fn what_was_asked_for_is_compared_and_nothing_else() {
        let one = |arguments: &str| {
            let mut sets = sets(arguments).unwrap();
            assert_eq!(sets.len(), 1, "{arguments}");
            sets.remove(0).1
        };
        assert_eq!(one("--quick"), jobs()[..QUICK]);
        assert_eq!(one("--once-held-out"), once_held_out());
        // A record says nothing of jobs drawn by another seed.
        assert_eq!(one("--recorded x"), jobs());
        assert_eq!(sets("--recorded x --seed 3").unwrap().len(), 2);
        assert_eq!(one("--held-out --seed 3 --part 2/7"), one("--held-out --seed 3")[2..4]);
        for refused in ["--recorded x --held-out", "--only tape", "--job x", "--quick --seed 1"] {
            assert!(sets(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn one_job_is_compared_by_its_description() {
        let job = &once_held_out()[2];
        let words = ["minerva-conformance", "figure", "sim-agrees", "--job", &job.to_string()].map(str::to_owned);
        let Arguments { command: Command::Figure { figure: Figure::SimAgrees(options) } } =
            Arguments::try_parse_from(words).unwrap()
        else {
            panic!("another figure");
        };
        assert_eq!(chosen(&options).unwrap()[0].jobs, std::slice::from_ref(job));
    }

    #[test]
    fn the_jobs_of_a_server_are_chosen_alike_and_its_scheduler_is_one_of_the_catalogue() {
        let parsed = |words: &str| {
            Arguments::try_parse_from(
                ["minerva-conformance", "figure", "blk-agrees"].into_iter().chain(words.split(' ')),
            )
        };
        let Arguments { command: Command::Figure { figure: Figure::BlkAgrees(options) } } =
            parsed("--quick --scheduler sfq").unwrap()
        else {
            panic!("another figure");
        };
        assert_eq!(chosen(&options.selection).unwrap()[0].jobs, jobs()[..QUICK]);
        assert_eq!(options.scheduler, Some(SchedulerName::Sfq));
        let refused = parsed("--quick --scheduler fifo").map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("there is no scheduler `fifo`; there are: noop"), "{refused}");
    }
}
