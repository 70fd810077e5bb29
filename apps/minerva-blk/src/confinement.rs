//! Which system calls this process may make once it serves: those that serving takes, none that writes to a file it has not open, starts
//! a program, speaks to a network or changes who it is. Every other one fails with `EPERM`, in every thread. Files may be opened to be
//! read; which, is limited by `reading`.
//!
//! The unit's own filter (`SystemCallFilter=`) is for the start too, so it is wider. A call that fails is chosen over one that ends the
//! process: nothing that an odd library or a later kernel asks for takes the disks from all guests, and for an intruder it is
//! as good.

use anyhow::Context;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter_all_threads,
};
use std::collections::BTreeMap;

/// What serving takes, by what for.
const ALLOWED: &[libc::c_long] = &[
    // Images: io_uring, or threads with these calls, and what a disk becomes.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_pread64,
    libc::SYS_fdatasync,
    libc::SYS_fallocate,
    libc::SYS_ftruncate,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_fcntl,
    // Signals to guests.
    libc::SYS_io_setup,
    libc::SYS_io_submit,
    libc::SYS_io_getevents,
    libc::SYS_io_destroy,
    // Front ends and operators, who connect.
    libc::SYS_listen,
    libc::SYS_accept4,
    libc::SYS_recvmsg,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_readv,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_close,
    libc::SYS_unlinkat,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    // Waiting and waking.
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_eventfd2,
    libc::SYS_pipe2,
    libc::SYS_futex,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_restart_syscall,
    libc::SYS_sched_yield,
    // Disks whose threads are to run on given processors.
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    // Memory: of guests, of the inflight region, and its own.
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_memfd_create,
    libc::SYS_fstatfs,
    // Threads, which come with disks and go with them.
    libc::SYS_clone3,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigreturn,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_geteuid,
    libc::SYS_getuid,
    libc::SYS_getrandom,
    libc::SYS_tgkill,
    libc::SYS_prctl,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// The same by older calls, which later architectures do not have.
#[cfg(target_arch = "x86_64")]
const ALLOWED_OLD: &[libc::c_long] =
    &[libc::SYS_unlink, libc::SYS_readlink, libc::SYS_epoll_wait, libc::SYS_poll, libc::SYS_stat, libc::SYS_lstat];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_OLD: &[libc::c_long] = &[];

/// `ioctl` for these only: what does not block, and how much of a message has come.
const IOCTLS: [u64; 2] = [libc::FIONBIO, libc::FIONREAD];
/// What a file that is only read is not opened with.
const WRITES: u64 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u64;

/// The filter for this architecture.
fn program() -> anyhow::Result<BpfProgram> {
    let calls = ALLOWED.iter().chain(ALLOWED_OLD);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = calls.map(|call| (*call, Vec::new())).collect();
    let only = |argument: u8, value: u64| {
        let is_it = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?;
        SeccompRule::new(vec![is_it])
    };
    rules.insert(libc::SYS_ioctl, IOCTLS.into_iter().map(|ioctl| only(1, ioctl)).collect::<Result<_, _>>()?);
    let is_read = |flags: u8| {
        let nothing_else = SeccompCmpOp::MaskedEq(WRITES);
        SeccompRule::new(vec![SeccompCondition::new(flags, SeccompCmpArgLen::Dword, nothing_else, 0)?])
    };
    rules.insert(libc::SYS_openat, vec![is_read(2)?]);
    // What rustix opens files with where it exists.
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, vec![is_read(1)?]);
    // Unix sockets: whatever a service manager or a tool listens at. No network.
    rules.insert(libc::SYS_socket, vec![only(0, libc::AF_UNIX as u64)?]);
    // The old way to start a thread; not to start a process, nor to leave a namespace.
    let thread = (libc::CLONE_VM | libc::CLONE_THREAD) as u64;
    let is_thread = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(thread), thread)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![is_thread])?]);
    let denied = SeccompAction::Errno(libc::EPERM as u32);
    let architecture = std::env::consts::ARCH.try_into().context("there is no filter for this architecture")?;
    let filter = SeccompFilter::new(rules, denied, SeccompAction::Allow, architecture)?;
    filter.try_into().context("failed to make the filter of system calls")
}

/// From now on, in all threads and for good.
pub(crate) fn confine() -> anyhow::Result<()> {
    apply_filter_all_threads(&program()?).context("failed to set the filter of system calls")
}

#[cfg(test)]
mod tests {
    use super::confine;
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::UnixStream;

    /// Names the case that a process of its own runs: what a filter forbids stays forbidden.
    const CASE: &str = "MINERVA_TEST_CONFINED";

    fn is_refused<T>(result: std::io::Result<T>) -> bool {
        result.err().is_some_and(|error| error.raw_os_error() == Some(libc::EPERM))
    }

    #[test]
    fn what_serving_does_not_take_is_refused_in_every_thread() {
        if std::env::var_os(CASE).is_some() {
            // A thread from before is bound too.
            let (go, wait) = std::sync::mpsc::channel::<()>();
            let before = std::thread::spawn(move || {
                let _ = wait.recv();
                is_refused(std::fs::File::options().append(true).open("/dev/null"))
            });
            confine().unwrap();
            drop(go);
            assert!(before.join().unwrap(), "a thread from before");
            let file = std::env::temp_dir().join("minerva-test-confined");
            assert!(is_refused(std::fs::File::create(file)), "a file of the host");
            assert!(std::fs::read_to_string("/sys/devices/system/cpu/online").is_ok());
            let old_call = |flags| rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty()).is_ok();
            assert!(old_call(rustix::fs::OFlags::RDONLY) && !old_call(rustix::fs::OFlags::WRONLY));
            assert!(is_refused(TcpListener::bind("127.0.0.1:0")) && is_refused(UdpSocket::bind("127.0.0.1:0")));
            assert!(is_refused(std::process::Command::new("/bin/true").status()), "a program");
            // SAFETY: the calls take numbers only.
            assert!(unsafe { libc::setuid(0) } == -1 && unsafe { libc::unshare(libc::CLONE_NEWUSER) } == -1);
            let is_served = || {
                let (ours, _theirs) = UnixStream::pair()?;
                ours.set_nonblocking(true)?;
                Ok::<_, std::io::Error>(rustix::io::ioctl_fionread(&ours)?)
            };
            let thread = std::thread::spawn(move || is_served().is_ok());
            assert!(thread.join().unwrap(), "threads and sockets of serving");
            println!("confined");
            return;
        }
        let own = std::env::current_exe().unwrap();
        let name = "confinement::tests::what_serving_does_not_take_is_refused_in_every_thread";
        let output = std::process::Command::new(own).args(["--exact", name, "--nocapture"]).env(CASE, "1").output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("confined"), "{said}");
    }
}
