//! Servers are killed and hand over while a stock guest writes and verifies, with our own verifier on one disk and fio on another.

use crate::hand_over::{ended, take_over};
use crate::pause::print_longest;
use crate::server_folder::{IMAGE_BYTES, ServerFolder, Serving};
use crate::verifier::{self, Told};
use minerva_lab::guest::{Guest, GuestError};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often the server hands over, and how often it is killed; `cargo xtask figures blk-guest` asks for more.
const EVENTS: &str = "MINERVA_GUEST_EVENTS";
const EVENTS_DEFAULT: u32 = 3;
/// In the guest, the test verifies this disk.
const VERIFIED: &str = "MINERVA_TEST_VERIFY";
const FIO: &str = "/usr/bin/fio";
/// A guest boots and goes on within seconds; on a busy machine it may take minutes.
const PATIENCE: Duration = Duration::from_secs(240);
const STEP: Duration = Duration::from_millis(5);

/// As often as it is done, until it fails: every block is written once, at random, and read back before the next ones are.
const FIO_LOOP: &str = "passes=0
while fio --name=verify --filename=/dev/vdb --direct=1 --ioengine=libaio --iodepth=16 --rw=randwrite --bs=4k --verify=crc32c \
    --verify_backlog=64 --verify_fatal=1 --thread --output=/tmp/fio --minimal; do
    passes=$((passes + 1))
    echo \"fio $passes\"
done
cat /tmp/fio
echo 'fio failed'
";

/// Not a test by itself: in the guest it writes and verifies.
#[test]
fn writes_and_verifies() {
    let Some(disk) = std::env::var_os(VERIFIED) else { return };
    verifier::run(Path::new(&disk), IMAGE_BYTES / 4096);
}

/// What the guest has said so far.
#[derive(Default)]
struct Heard {
    stdout: Mutex<String>,
    /// The guest has ended, well or not.
    has_ended: AtomicBool,
    /// It may end.
    is_over: AtomicBool,
}

impl Heard {
    fn stdout(&self) -> String {
        self.stdout.lock().unwrap().clone()
    }

    fn told(&self) -> Told {
        Told::last(&self.stdout()).unwrap_or_default()
    }

    /// How often fio has written and read back everything.
    fn passes(&self) -> u64 {
        let passes = |line: &str| line.strip_prefix("fio ")?.parse().ok();
        self.stdout().lines().rev().find_map(passes).unwrap_or_default()
    }

    /// Waits until it is so; false where the guest ended before.
    fn wait(&self, patience: Duration, is_so: impl Fn() -> bool) -> bool {
        let begun = Instant::now();
        while !is_so() {
            if self.has_ended.load(Ordering::Relaxed) {
                return false;
            }
            assert!(begun.elapsed() < patience, "the guest does not go on: {}", self.stdout());
            std::thread::sleep(STEP);
        }
        true
    }

    /// The longest that a request took in the guest from the first line after `from` on, in milliseconds.
    fn longest_ms(&self, from: usize) -> u64 {
        let stdout = self.stdout();
        let lines = stdout.get(from..).unwrap_or_default().split_inclusive('\n');
        lines.filter_map(Told::last).map(|told| told.longest_ms).max().unwrap_or_default()
    }
}

/// What happens to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Happening {
    HandOver,
    Kill,
}

fn happen(place: &ServerFolder, mut serving: Serving, happening: Happening) -> Serving {
    match happening {
        Happening::HandOver => {
            let next = take_over(place);
            let (is_content, said) = ended(serving);
            assert!(is_content && said.contains("serves the disks now"), "{said}");
            next
        }
        Happening::Kill => {
            serving.0.kill().unwrap();
            serving.0.wait().unwrap();
            place.serve()
        }
    }
}

/// Lets the guest end, however its conductor does.
struct Over<'a>(&'a Heard);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

/// Plays all that happens; by happening the longest time that a request of the guest took, in milliseconds.
fn conduct(place: &ServerFolder, mut serving: Serving, heard: &Heard, has_fio: bool) -> Vec<(Happening, u64)> {
    let _over = Over(heard);
    let count = std::env::var(EVENTS).ok().and_then(|text| text.parse().ok()).unwrap_or(EVENTS_DEFAULT);
    // The figure gives its own seed.
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("order and moments with seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut happenings: Vec<Happening> = (0..count).flat_map(|_| [Happening::HandOver, Happening::Kill]).collect();
    random.shuffle(&mut happenings);
    let mut pauses = Vec::new();
    let mut goes_on = heard.wait(PATIENCE, || heard.told().sweeps > 0 && (!has_fio || heard.passes() > 0));
    for happening in happenings {
        if !goes_on {
            break;
        }
        std::thread::sleep(Duration::from_millis(random.u64(..300)));
        let (from, before) = (heard.stdout().len(), heard.told());
        serving = happen(place, serving, happening);
        // What the guest said while that happened may have been before it: it has to go on twice.
        goes_on = heard.wait(PATIENCE, || heard.told().writes > before.writes)
            && heard.wait(PATIENCE, || heard.told().sweeps > before.sweeps + 1);
        pauses.push((happening, heard.longest_ms(from)));
    }
    let (last, passes) = (heard.told(), heard.passes());
    let is_verified = || heard.told().sweeps > last.sweeps + 1 && (!has_fio || heard.passes() > passes + 1);
    // What is wrong is told below.
    let _ = goes_on && heard.wait(PATIENCE, is_verified);
    pauses
}

fn two_disks(place: &ServerFolder) {
    let other = place.folder.path().join("vm2.raw");
    std::fs::File::create(&other).unwrap().set_len(IMAGE_BYTES).unwrap();
    let text = |direct: &str| {
        let (image, socket, other_socket) = (place.image(), place.socket(), place.socket_of(2));
        format!(
            "[disks.vm1]\nimage = {image:?}\nsocket = {socket:?}\n{direct}\n[disks.vm2]\nimage = {other:?}\nsocket = {other_socket:?}\n{direct}\n"
        )
    };
    place.write_text(&text(""));
    if !place.run(&["--check"]).status.success() {
        place.write_text(&text("direct = false"));
    }
}

#[test]
fn a_stock_guest_that_writes_and_verifies_sees_neither_hand_overs_nor_kills() {
    let place = ServerFolder::new();
    two_disks(&place);
    let serving = place.serve();
    while [1, 2].iter().any(|disk| std::os::unix::net::UnixStream::connect(place.socket_of(*disk)).is_err()) {
        std::thread::sleep(STEP);
    }
    let program = std::env::current_exe().unwrap();
    let name = program.file_name().unwrap().to_string_lossy().into_owned();
    let verify = format!("{VERIFIED}=/dev/vda {name} --exact guest_under_load::writes_and_verifies --nocapture &\n");
    let mut guest = Guest::builder().memory_mib(1024).cpus(2).with_binary(&program);
    guest = guest.vhost_user_disk(place.socket()).vhost_user_disk(place.socket_of(2));
    let has_fio = Path::new(FIO).is_file();
    match has_fio {
        true => guest = guest.with_binary(FIO),
        false => println!("skipped: needs fio for the guest's second disk"),
    }
    let script = format!("{verify}{}wait\n", if has_fio { FIO_LOOP } else { "" });
    let heard = Heard::default();
    let (output, pauses) = std::thread::scope(|scope| {
        let conductor = scope.spawn(|| conduct(&place, serving, &heard, has_fio));
        let output = guest.run_until_cut(&script, Duration::from_secs(1500), |stdout| {
            stdout.clone_into(&mut heard.stdout.lock().unwrap());
            heard.is_over.load(Ordering::Relaxed)
        });
        heard.has_ended.store(true, Ordering::Relaxed);
        (output, conductor.join().unwrap())
    });
    match output {
        Ok(_) => {}
        Err(error) if GuestError::is_missing(&error) => return println!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    }
    judge(&heard, &pauses);
}

fn judge(heard: &Heard, pauses: &[(Happening, u64)]) {
    let (stdout, told) = (heard.stdout(), heard.told());
    assert!(!stdout.contains("fio failed") && told.wrong == 0, "{stdout}");
    for happening in [Happening::HandOver, Happening::Kill] {
        let mut own: Vec<u64> = pauses.iter().filter(|(which, _)| *which == happening).map(|(_, ms)| *ms).collect();
        own.sort_unstable();
        println!(
            "{} times {happening:?} under a guest: longest request {:?} ms, median {:?}",
            own.len(),
            own.last(),
            own.get(own.len() / 2)
        );
        if let (Happening::HandOver, Some(longest)) = (happening, own.last()) {
            let what = format!("longest request of a guest beside one of {} hand-overs", own.len());
            print_longest("blk-guest", Duration::from_millis(*longest), &what);
        }
    }
    println!(
        "{} writes acknowledged, all blocks read back {} times, fio's {} times",
        told.writes,
        told.sweeps,
        heard.passes()
    );
}
