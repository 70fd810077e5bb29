//! What can go wrong at the start, and what to do about it. Once it runs nothing that a guest does is an error here.

use std::io;
use std::path::PathBuf;

/// Why an image cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// It cannot be opened.
    #[error("open the image {}", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not what a guest can have for a disk.
    #[error("{}: {why}; {remedy}", path.display())]
    Refused {
        /// Which.
        path: PathBuf,
        /// What it is instead.
        why: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Another process has its lock, perhaps one that was killed and whose last request the disk still has.
    #[error(
        "{}: locked by another process, which writes to it; end that process (`lslocks` shows it), or name another image", path.display()
    )]
    Locked {
        /// Which.
        path: PathBuf,
    },
}

/// What gives a guest memory that can be served.
const SHARED_MEMORY: &str = "give QEMU `-object memory-backend-memfd,id=mem,size=SIZE,share=on,seal=on -machine memory-backend=mem`, or \
     libvirt `<memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking>`";

/// Why a front end was hung up on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HangUp {
    /// Memory that gets shorter would kill the server, and with it the disks of all guests.
    #[error(
        "it could make the guest's memory shorter, which would end this server for all guests: {}, in place of a file",
        SHARED_MEMORY
    )]
    NotSealed,
    /// Memory from a pool that is empty, or that the front end can give back to it, kills who touches it.
    #[error(
        "the guest's memory comes from the host's pool of hugepages, which would end this server for all guests once it is empty: {}, \
         without `hugetlb=on` and `<hugepages/>`; for large pages without a pool write `advise` to \
         `/sys/kernel/mm/transparent_hugepage/shmem_enabled` on the host",
        SHARED_MEMORY
    )]
    HugePages,
    /// It hung up itself, having agreed on everything but the guest's memory: QEMU finds none that it could share.
    #[error("it hung up without sharing the guest's memory: {}", SHARED_MEMORY)]
    NotShared,
    /// A ring of a length that none has.
    #[error(
        "its queues have {0} entries, and a queue has a power of two of them, at most 1024: give QEMU's device `queue-size=128`"
    )]
    QueueSize(u32),
    /// It shares less than it says.
    #[error("the guest's memory is shorter than its front end says; end the guest, and {}", SHARED_MEMORY)]
    TooShort,
    /// Pieces that overlap, are of no length, or do not fit into an address space.
    #[error(
        "the guest's memory cannot be mapped as it says; end the guest, and {}; where that is so already, look whether the server may map \
         so much (`LimitAS=` of its unit, `ulimit -v`, `vm.overcommit_memory`)",
        SHARED_MEMORY
    )]
    NotMapped,
    /// It agreed to features that this server does not offer for the disk.
    #[error(
        "it agreed to features that are not offered (bits {0:#x}), as a guest does that began with another server or before its disk was \
         made `read_only`: start the guest again, which agrees anew, or serve the disk as before"
    )]
    Features(u64),
    /// A kick or a call that could hold up the server.
    #[error(
        "it gave something else than an event counter (`eventfd`) to signal with; use a front end that keeps to the vhost-user protocol, \
         such as QEMU 7.2 or later"
    )]
    NoEventCounter,
    /// It did not end what it began to say, or reads no answers.
    #[error(
        "it began a message and did not end it, or reads no answers; look at its process (a debugger, `SIGSTOP`, no memory?), and let the \
         guest go on or start it again: with `reconnect` QEMU comes back by itself"
    )]
    Stalled,
    /// The server has no file descriptor left for it.
    #[error("the server has no file descriptor left for it; raise `LimitNOFILE=` of its unit (`ulimit -n`)")]
    NoDescriptor,
    /// It said something that cannot be obeyed.
    #[error(
        "it sent something that the vhost-user protocol does not allow or this server does not offer: {0}; use QEMU 7.2 or later with the \
         arguments that `minerva-ctl disk attach-line` prints"
    )]
    Protocol(String),
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A socket cannot be listened at.
    #[error("listen at {}", path.display())]
    Listen {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody answers at a socket already.
    #[error("{} is in use: another server listens there; end it, or choose another `socket`", path.display())]
    InUse {
        /// Where.
        path: PathBuf,
    },
    /// There is something that is not to be removed.
    #[error("{} is a file and no socket; it was left alone: choose another `socket`, or move the file", path.display())]
    NoSocket {
        /// Where.
        path: PathBuf,
    },
    /// A front end agreed with the server before to something that this one does not have.
    #[error("disk `{disk}`: its front end stays with its current server: {why}")]
    FrontEnd {
        /// Which.
        disk: String,
        /// What does not fit.
        why: String,
    },
    /// A front end's message is not done with, so that nothing can be handed over.
    #[error(
        "disk `{disk}`: its guest is stopping it or setting it up, which is not done yet; try again in a while: `minerva-ctl disk top` shows \
         what it has under way"
    )]
    Busy {
        /// Which.
        disk: String,
    },
    /// A disk was removed, and what it has under way is not answered, so that nothing can be handed over.
    #[error(
        "disk `{disk}` was removed, and its image's storage does not answer what it had under way; look at that storage: everything else is \
         served until it does"
    )]
    Leaving {
        /// Which.
        disk: String,
    },
    /// The thread of the disk's device waits for the kernel.
    #[error(
        "disk `{disk}`: the thread of its device waits for an image whose storage does not answer; try again once that does, or put its \
         image on another device"
    )]
    HeldUp {
        /// Which.
        disk: String,
    },
    /// The kernel refuses what the server needs to run.
    #[error("{what}")]
    System {
        /// What it was asked for.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
}

impl ServerError {
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { what, source: source.into() }
    }
}
