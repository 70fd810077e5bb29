//! A guest takes part: in a machine of its own, with a kernel of its own, a program asks through the agent, and on the host the
//! machine's tenant steps back; over vsock and over a network.

#![expect(clippy::expect_used, reason = "a test bed that cannot be made is a failed test")]

mod debts;
mod host;

use host::{Host, TENANT, Watch};
use minerva_api::v1;
use minerva_lab::guest::{Guest, GuestBuilder, GuestOutput};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Generous: processors are emulated and the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(300);

/// One guest at a time.
static TURN: Mutex<()> = Mutex::new(());

/// What programs of the guest do. Each level is held for some seconds, of which the host's slices, a tenth of one, see many.
const SCRIPT: &str = r#"
minerva-agent --report-period 500ms 2> /tmp/agent.log &
agent=$!
tries=0
until [ -S /run/minerva/agent.sock ] || [ $tries -ge 100 ]; do sleep 0.1; tries=$((tries + 1)); done
# On a busy machine the agent's first connection to the host may take longer than the tool waits.
tries=0
until whoami=$(minerva-ctl --json whoami) || [ $tries -ge 10 ]; do sleep 1; tries=$((tries + 1)); done
echo "whoami: $whoami"
minerva-ctl run --priority idle -- sh -c 'exec 3< /bin/busybox; sleep 5; echo held'
echo "run: $?"
sleep 2
# It lasts until the level is held, however long that takes in a slow guest, and some seconds more.
sleep 60 &
lasting=$!
minerva-ctl priority lowest --until-pid $lasting
echo "until: $?"
sleep 5
kill $lasting
sleep 2
echo "when: $(minerva-ctl --json when --bytes 1M --deadline 5s)"
minerva-ctl priority low
echo "set: $?"
sleep 2
minerva-ctl priority normal
sleep 2
kill $agent
wait $agent
echo "agent: $?"
cat /tmp/agent.log >&2
"#;

/// What the host saw while the guest ran.
#[derive(Debug, Default)]
struct Seen {
    /// What the tenant was taken for at last.
    kind: String,
    /// Each level after the other, as often as it changed; empty for normal.
    levels: Vec<String>,
    /// The guest's busybox, open, was in a report.
    file: Option<v1::OpenFile>,
}

impl Seen {
    fn look(&mut self, tenant: &v1::Tenant) {
        self.kind.clone_from(&tenant.kind);
        let part = tenant.part.clone().unwrap_or_default();
        if self.levels.last() != Some(&part.level) {
            self.levels.push(part.level.clone());
        }
        let processes = part.report.map(|report| report.processes).unwrap_or_default();
        let file = processes.into_iter().flat_map(|process| process.files).find(|file| file.path == "/bin/busybox");
        self.file = file.or_else(|| self.file.take());
    }
}

/// Runs the script in the guest, in the tenant's cgroup, and watches the tenant meanwhile. Nothing, with the reason printed,
/// where guests cannot run.
fn run(host: &Host, guest: GuestBuilder<'_>, script: &str) -> Option<(GuestOutput, Seen)> {
    // Two guests at once would be half as fast, and what waits for them counts seconds.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let agent = host.program("minerva-agent")?;
    let tool = host.program("minerva-ctl")?;
    let (watch, ended) = (Watch::of(host), Arc::new(AtomicBool::new(false)));
    let until = Arc::clone(&ended);
    let watching = std::thread::spawn(move || {
        let mut seen = Seen::default();
        while !until.load(Ordering::Relaxed) {
            watch.tenant().into_iter().for_each(|tenant| seen.look(&tenant));
            std::thread::sleep(Duration::from_millis(50));
        }
        seen
    });
    let guest = guest.name(TENANT).memory_mib(768).cpus(2).cgroup(host.cgroup()).with_binary(agent).with_binary(tool);
    let result = guest.run(script, TIMEOUT);
    ended.store(true, Ordering::Relaxed);
    let seen = watching.join().expect("it does not panic");
    match result {
        Ok(output) => Some((output, seen)),
        Err(error) if error.is_missing() => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}\n{}", host.log()),
    }
}

fn judge(host: &Host, identified_by: &str, output: &GuestOutput, seen: &Seen) {
    let context = format!("{seen:?}\n{}\n{}\n{}", output.stdout, output.stderr, host.log());
    let line = |start: &str| {
        let found = output.stdout.lines().find_map(|line| line.strip_prefix(start));
        found.unwrap_or_else(|| panic!("no line `{start}` in\n{context}")).trim().to_owned()
    };
    let whoami: serde_json::Value = serde_json::from_str(&line("whoami:")).expect(&context);
    assert_eq!(whoami["tenant"], TENANT, "{context}");
    assert_eq!(whoami["identified_by"], identified_by, "{context}");
    assert!(output.stdout.contains("held\n"), "{context}");
    for (what, status) in [("run:", "0"), ("until:", "0"), ("set:", "0"), ("agent:", "0")] {
        assert_eq!(line(what), status, "{what} {context}");
    }
    // The host knows no disk that would be the guest's.
    assert!(line("when:").contains(r#""refusal":"unknown-device""#), "{context}");
    assert_eq!(seen.kind, "virtual-machine", "{context}");
    assert_eq!(seen.levels, ["", "idle", "", "lowest", "", "low", ""], "{context}");
    assert!(seen.file.as_ref().is_some_and(|file| file.size_bytes > 500_000), "{context}");
}

#[test]
fn a_guest_takes_part_over_vsock() {
    let Some(mut host) = Host::new() else { return };
    let Some(minervad) = host.program("minervad") else { return };
    let device = host.path("vm.vsock");
    let listener =
        format!("socket = \"\"\n[[identities]]\ntenant = \"{TENANT}\"\nvsock_socket = \"{}_7420\"\n", device.display());
    host.serve(&minervad, &listener);
    // The agent finds the host by itself: it is a guest with a vsock.
    let Some((output, seen)) = run(&host, Guest::builder().vsock(&device), SCRIPT) else { return };
    judge(&host, "vsock", &output, &seen);
}

/// A certificate of the name, signed by the authority; both parts as PEM.
fn certificate(signer: &CertifiedIssuer<'_, KeyPair>, common_name: &str, name: &str) -> (String, String) {
    let mut parameters = CertificateParams::new([name.to_owned()]).expect("a name");
    parameters.distinguished_name.push(DnType::CommonName, common_name);
    let key = KeyPair::generate().expect("a key");
    (parameters.signed_by(&key, signer).expect("a certificate").pem(), key.serialize_pem())
}

/// What a guest needs to reach its host over a network.
struct Network {
    /// The daemon's `[participation]`.
    participation: String,
    /// Names and texts of the guest's files.
    files: [(&'static str, String); 3],
    /// What the guest's script begins with.
    prelude: String,
}

/// Certificates for both, and an address.
fn network(host: &Host) -> Network {
    let mut parameters = CertificateParams::new(Vec::new()).expect("parameters");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority =
        CertifiedIssuer::self_signed(parameters, KeyPair::generate().expect("a key")).expect("an authority");
    // The host's address as the guest sees it.
    let (certificate_of_host, key_of_host) = certificate(&authority, "host", "10.0.2.2");
    let (certificate_of_guest, key_of_guest) = certificate(&authority, "guest", "guest.example");
    for (name, text) in [("ca.pem", &authority.pem()), ("host.pem", &certificate_of_host), ("host.key", &key_of_host)] {
        std::fs::write(host.path(name), text).expect("a file");
    }
    // An address that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let at = host.directory.path().display().to_string();
    let participation = format!(
        "socket = \"\"\nlisten = \"{address}\"\ncertificate = \"{at}/host.pem\"\nkey = \"{at}/host.key\"\n\
         client_ca = \"{at}/ca.pem\"\n[[identities]]\ntenant = \"{TENANT}\"\ncertificate = \"guest.example\"\n"
    );
    let prelude = format!(
        "ip addr add 10.0.2.15/24 dev eth0 && ip link set eth0 up\n\
         export MINERVA_CA=/etc/ca.pem MINERVA_CERTIFICATE=/etc/guest.pem MINERVA_KEY=/etc/guest.key\n\
         export MINERVA_UPSTREAM=https://10.0.2.2:{}\n",
        address.port()
    );
    let files =
        [("/etc/ca.pem", authority.pem()), ("/etc/guest.pem", certificate_of_guest), ("/etc/guest.key", key_of_guest)];
    Network { participation, files, prelude }
}

/// A guest with a network and these files.
fn networked<'a>(files: [(&'static str, String); 3]) -> GuestBuilder<'a> {
    files.into_iter().fold(Guest::builder().network(), |guest, (path, text)| guest.with_file(path, text))
}

#[test]
fn a_guest_takes_part_over_a_network() {
    let Some(mut host) = Host::new() else { return };
    let Some(minervad) = host.program("minervad") else { return };
    let Network { participation, files, prelude } = network(&host);
    host.serve(&minervad, &participation);
    let Some((output, seen)) = run(&host, networked(files), &format!("{prelude}{SCRIPT}")) else { return };
    judge(&host, "certificate", &output, &seen);
}
