//! Who is who at the tenants' socket, on real cgroups: the process that connects is in its tenant's group.

mod versions;

use crate::bed::{Bed, Daemon, until};
use hyper_util::rt::TokioIo;
use minerva_api::v1;
use minerva_api::v1::participation_client::ParticipationClient;
use sha2::{Digest, Sha256};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Code, Status};

const RELAY_FROM: &str = "MINERVA_TEST_RELAY_FROM";
const RELAY_TO: &str = "MINERVA_TEST_RELAY_TO";
/// A group that the relay joins between connecting and passing on; it connects as nobody.
const RELAY_JOINS: &str = "MINERVA_TEST_RELAY_JOINS";

/// A process of the tenant that passes on whatever is said to its socket: who speaks through it is the tenant.
pub(crate) struct Relay {
    pub(crate) child: Child,
    pub(crate) socket: PathBuf,
}

impl Relay {
    pub(crate) fn start(bed: &Bed, daemon_socket: &Path, group: &Path) -> Self {
        let socket = bed.directory.path().join(format!("relay-{}", group.display().to_string().replace('/', "-")));
        let script = format!("echo $$ > {} && exec \"$0\" \"$@\"", group.join("cgroup.procs").display());
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(std::env::current_exe().expect("this program"));
        command.args(["--exact", "listeners::relay", "--nocapture"]).stdout(Stdio::null());
        command.env(RELAY_FROM, &socket).env(RELAY_TO, daemon_socket);
        let child = command.spawn().expect("a shell");
        until("the relay listens", || socket.exists());
        Self { child, socket }
    }

    pub(crate) fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.end();
    }
}

/// The relay's own process; nothing in a run of the tests.
#[test]
fn relay() {
    let (Some(from), Some(to)) = (std::env::var_os(RELAY_FROM), std::env::var_os(RELAY_TO)) else { return };
    // Under its name only when it listens: whoever waits for it may connect at once.
    let unnamed = PathBuf::from(&from).with_extension("new");
    let listener = UnixListener::bind(&unnamed).expect("a socket");
    fs::rename(&unnamed, &from).expect("a name");
    for inside in listener.incoming() {
        let (inside, outside) = (inside.expect("a client"), connect(Path::new(&to)));
        let pairs = [(&inside, &outside), (&outside, &inside)];
        for (from, to) in pairs {
            let (mut from, mut to) = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
        }
    }
}

/// Connects the relay; as nobody, if it is to join a group only then.
fn connect(to: &Path) -> UnixStream {
    use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
    let Ok(group) = std::env::var(RELAY_JOINS) else { return UnixStream::connect(to).expect("the daemon") };
    let (nobody, nogroup, root) = (Uid::from_raw(65_534), Gid::from_raw(65_534), Uid::from_raw(0));
    setgroups(&[nogroup]).expect("root may");
    setresgid(nogroup, nogroup, nogroup).expect("root may");
    setresuid(nobody, nobody, root).expect("root may");
    let outside = UnixStream::connect(to).expect("the daemon");
    setresuid(root, root, root).expect("the saved one is root");
    setgroups(&[Gid::from_raw(group.parse().expect("a number"))]).expect("root may");
    outside
}

pub(crate) type Client = ParticipationClient<Channel>;

/// Speaks at a socket.
pub(crate) fn at<T>(socket: &Path, scene: impl AsyncFnOnce(Client) -> T) -> T {
    over(socket, async |channel| scene(ParticipationClient::new(channel)).await)
}

/// The same in whatever version of the contract.
fn over<T>(socket: &Path, scene: impl AsyncFnOnce(Channel) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let path = socket.to_owned();
    let connector = tower::service_fn(move |_: Uri| {
        let path = path.clone();
        async move { tokio::net::UnixStream::connect(path).await.map(TokioIo::new) }
    });
    runtime.block_on(async {
        let channel = Endpoint::from_static("http://minervad.invalid").connect_with_connector(connector).await;
        scene(channel.expect("a connection")).await
    })
}

pub(crate) fn describe(socket: &Path) -> Result<v1::DescribeResponse, Status> {
    at(socket, async |mut client| client.describe(v1::DescribeRequest {}).await.map(tonic::Response::into_inner))
}

/// A daemon in `enforce`, and its socket for tenants.
pub(crate) fn open(further: &str) -> Option<(Bed, Daemon, PathBuf)> {
    let bed = Bed::new()?;
    bed.write_config(&format!("mode = \"enforce\"\n{further}"));
    let socket = bed.directory.path().join("run/tenant.sock");
    let daemon = bed.start();
    Some((bed, daemon, socket))
}

#[test]
fn a_process_is_its_cgroups_tenant_also_in_a_new_one() {
    let Some((bed, daemon, socket)) = open("") else { return };
    let relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    let found = describe(&relay.socket).expect("a tenant");
    assert_eq!((found.tenant.as_str(), found.identified_by.as_str()), ("heavy", "cgroup"));
    assert_eq!((found.role.as_str(), found.mode.as_str()), ("participant", "enforce"));
    // Made this moment: the daemon sees it with its next slice, and the one who asks waits for that.
    let young = bed.cgroup("young");
    fs::create_dir(&young).expect("a cgroup");
    let relay = Relay::start(&bed, &socket, &young);
    assert_eq!(describe(&relay.socket).expect("a tenant").tenant, "young");
    let status = daemon.status().and_then(|status| status.slice).expect("a slice");
    assert!(status.tenants.iter().any(|tenant| tenant.name == "young"));
}

#[test]
fn who_is_in_no_tenants_cgroup_is_told_what_to_do() {
    let Some((bed, daemon, socket)) = open("") else { return };
    let root = bed.root();
    let relay = Relay::start(&bed, &socket, root);
    let status = describe(&relay.socket).expect_err("nobody");
    assert_eq!(status.code(), Code::Unauthenticated, "{status:?}");
    assert!(status.message().contains("is in the root cgroup, which is no tenant"), "{}", status.message());
    // Outside `daemon.include`.
    let other = root.join(format!("{}-named", bed.name));
    fs::create_dir(&other).expect("a cgroup");
    let relay = Relay::start(&bed, &socket, &other);
    let status = describe(&relay.socket).expect_err("no tenant");
    assert_eq!(status.code(), Code::NotFound, "{status:?}");
    assert!(status.message().contains(&format!("The cgroup {}-named is no tenant", bed.name)), "{}", status.message());
    until("the log has it", || daemon.log().contains("refused a request: The cgroup"));
}

#[test]
fn a_crowd_of_strangers_keeps_no_new_cgroup_out() {
    let Some((bed, daemon, socket)) = open("") else { return };
    // This process is in no tenant's group, and of the same user as the others.
    let connect = || UnixStream::connect(&socket).expect("a connection");
    let mut crowd: Vec<UnixStream> = (0..600).map(|_| connect()).collect();
    until("the crowd is too large", || daemon.log().contains("It was hung up on to make room"));
    std::thread::scope(|scope| {
        // More come while those who have something to say wait for their cgroups to be seen. They take the place of the others, as
        // this process may have 1,024 open where systemd started it.
        scope.spawn(|| crowd.iter_mut().for_each(|one| *one = connect()));
        for name in ["young", "younger"] {
            let group = bed.cgroup(name);
            fs::create_dir(&group).expect("a cgroup");
            let honest = Relay::start(&bed, &socket, &group);
            assert_eq!(describe(&honest.socket).expect("a tenant").tenant, name);
        }
    });
}

#[test]
fn identities_are_taken_from_a_new_file_and_one_of_nobody_is_missed() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).expect("a port");
    let identity = |tenant: &str, token: &str| {
        let digest: String = Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("[[identities]]\ntenant = \"{tenant}\"\ntoken_sha256 = \"{digest}\"\n")
    };
    let settings = |identities: &str| format!("[participation]\nlisten = \"{address}\"\n{identities}");
    let Some((bed, daemon, _)) = open(&settings(&identity("heavy", "one"))) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let asks = |token: &str| {
        runtime.block_on(async {
            let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
            let mut client = ParticipationClient::new(endpoint.connect().await.expect("a connection"));
            let mut request = tonic::Request::new(v1::DescribeRequest {});
            let token = format!("Bearer {token}").parse().expect("plain text");
            request.metadata_mut().insert("authorization", token);
            client.describe(request).await.map(|answer| answer.into_inner().tenant)
        })
    };
    assert_eq!(asks("one").expect("a tenant"), "heavy");
    let two = [identity("sparing", "two"), identity("nobody", "three")].concat();
    bed.write_config(&format!("mode = \"enforce\"\n{}", settings(&two)));
    until("the new one is known", || asks("two").is_ok_and(|tenant| tenant == "sparing"));
    assert_eq!(asks("one").expect_err("it is nobody's now").code(), Code::Unauthenticated);
    until("the tenant is missed", || daemon.log().contains("names a tenant that is not there"));
    assert!(!daemon.log().contains("take a restart"), "{}", daemon.log());
}

#[test]
fn a_connection_outlives_neither_its_process_nor_its_tenant() {
    let Some((bed, _daemon, socket)) = open("") else { return };
    let group = bed.cgroup("young");
    fs::create_dir(&group).expect("a cgroup");
    let mut relay = Relay::start(&bed, &socket, &group);
    let path = relay.socket.clone();
    at(&path, async |mut client| {
        assert_eq!(client.describe(v1::DescribeRequest {}).await.expect("a tenant").get_ref().tenant, "young");
        // The process is moved, and the group that it came from removed: it is looked up anew.
        let procs = bed.cgroup("heavy").join("cgroup.procs");
        fs::write(procs, relay.child.id().to_string()).expect("moved");
        until("the group can be removed", || fs::remove_dir(&group).is_ok());
        let mut name = String::from("young");
        while name == "young" {
            name = match client.describe(v1::DescribeRequest {}).await {
                Ok(answer) => answer.into_inner().tenant,
                // It went just then, and another try is worth while.
                Err(status) if status.code() == Code::Unavailable => name,
                Err(status) => panic!("{status:?}"),
            };
        }
        assert_eq!(name, "heavy");
        relay.end();
        assert!(client.describe(v1::DescribeRequest {}).await.is_err());
    });
}

#[test]
fn limits_are_taken_from_a_new_file_and_another_listener_after_a_restart() {
    let Some((bed, daemon, socket)) = open("") else { return };
    let relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    assert!(describe(&relay.socket).is_ok());
    bed.write_config("mode = \"enforce\"\n[participation]\nrequests_per_second = 1\nburst = 1\nkeepalive = \"1s\"\n");
    until("the limits hold", || describe(&relay.socket).is_err_and(|status| status.code() == Code::ResourceExhausted));
    assert!(daemon.log().contains("[participation] but for its limits"), "{}", daemon.log());
}

#[test]
fn viewers_look_and_change_nothing() {
    if Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!("skipped: needs setpriv");
        return;
    }
    let Some(bed) = Bed::new() else { return };
    bed.write_config("mode = \"shadow\"");
    let text = fs::read_to_string(bed.config()).expect("the file");
    let text = text.replace("[daemon]\n", "[daemon]\nviewer_group = \"4321\"\n");
    fs::write(bed.config(), text).expect("the file");
    let daemon = bed.start();
    // Others have to get as far as the socket.
    for directory in [bed.directory.path(), &bed.directory.path().join("run")] {
        fs::set_permissions(directory, PermissionsExt::from_mode(0o777)).expect("permissions");
    }
    // The build directory may lie where nobody may look.
    let copy = bed.directory.path().join("relay");
    fs::copy(std::env::current_exe().expect("this program"), &copy).expect("a copy");
    let relay = |groups: &str| {
        let socket = bed.directory.path().join("run").join(format!("relay-{groups}"));
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", &format!("--groups={groups}"), "--inh-caps=-all"]).arg(&copy);
        command.args(["--exact", "listeners::relay", "--nocapture"]).stdout(Stdio::null());
        command.env(RELAY_FROM, &socket).env(RELAY_TO, bed.socket());
        let child = command.spawn().expect("setpriv");
        until("the relay listens", || socket.exists());
        Relay { child, socket }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    // Joins the group when it has connected: as the number of a process that has ended may become a member's.
    let late = {
        let socket = bed.directory.path().join("run/relay-late");
        let mut command = Command::new(&copy);
        command.args(["--exact", "listeners::relay", "--nocapture"]).stdout(Stdio::null());
        command.env(RELAY_FROM, &socket).env(RELAY_TO, bed.socket()).env(RELAY_JOINS, "4321");
        let child = command.spawn().expect("this program");
        until("the relay listens", || socket.exists());
        Relay { child, socket }
    };
    runtime.block_on(async {
        let mut client = minerva_api::client::connect(&late.socket).await.expect("a connection");
        let refused = client.status(v1::StatusRequest {}).await.expect_err("no member when it connected");
        assert_eq!(refused.code(), Code::PermissionDenied);
        let viewer = relay("4321");
        let mut client = minerva_api::client::connect(&viewer.socket).await.expect("a connection");
        assert!(client.status(v1::StatusRequest {}).await.is_ok());
        let refused = client.reload(v1::ReloadRequest {}).await.expect_err("a viewer");
        assert_eq!(refused.code(), Code::PermissionDenied);
        assert!(refused.message().contains("may look and no more; Reload is for operators"), "{}", refused.message());
        let stranger = relay("4322");
        let mut client = minerva_api::client::connect(&stranger.socket).await.expect("a connection");
        assert_eq!(client.status(v1::StatusRequest {}).await.expect_err("nobody").code(), Code::PermissionDenied);
        for _ in 0..200 {
            client.status(v1::StatusRequest {}).await.expect_err("nobody");
        }
    });
    let log = daemon.log();
    assert!(log.contains("members of daemon.viewer_group may look and no more"), "{log}");
    assert!(log.contains("only root and the group of the daemon's socket may ask"), "{log}");
    let lines = log.lines().filter(|line| line.contains("refused a client at the operators' socket")).count();
    assert!(lines < 40, "{lines} lines of {}", log.lines().count());
}

#[test]
fn whoever_connects_and_says_nothing_is_hung_up_on_and_metrics_are_still_served() {
    use std::io::Read;
    let Some(bed) = Bed::new() else { return };
    bed.write_config("mode = \"shadow\"");
    let daemon = bed.start();
    let connect = |path: &Path| {
        let stream = UnixStream::connect(path).expect("a socket");
        stream.set_read_timeout(Some(std::time::Duration::from_secs(120))).expect("a socket");
        stream
    };
    let metrics = bed.directory.path().join("run/metrics.sock");
    let held: Vec<UnixStream> = (0..40).map(|_| connect(&metrics)).collect();
    assert!(bed.scrape().ends_with("# EOF\n"), "others say nothing");
    for mut stream in held {
        // `read_to_end` goes on where a signal interrupts it, as `read` does not.
        assert_eq!(stream.read_to_end(&mut Vec::new()).expect("the daemon ends it"), 0);
    }
    let mut silent = connect(&bed.socket());
    let mut text = Vec::new();
    silent.read_to_end(&mut text).expect("the daemon ends it");
    assert!(daemon.status().is_some());
}
