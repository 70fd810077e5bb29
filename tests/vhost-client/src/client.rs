//! The connection and its memory.

use crate::request::Layout;
use crate::ring::ClientRing;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vhost::vhost_user::message::{VhostUserConfigFlags, VhostUserInflight, VhostUserProtocolFeatures};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vm_memory::{FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};

const RING_EVENT_IDX: u64 = 1 << 29;
const PROTOCOL_FEATURES: u64 = 1 << 30;
/// How long a server may take until it listens.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Guests have their memory from 0 on; a ring at 0 would hide mistakes.
const MEMORY_START: u64 = 0x10_0000;
/// The configuration space up to the fields of write-zeroes.
const CONFIG_BYTES: u32 = 60;

/// What front end to be.
#[derive(Clone, Copy, Debug)]
pub struct ClientOptions {
    /// Rings.
    pub queues: u16,
    /// Descriptors of each.
    pub queue_size: u16,
    /// Chains in tables of their own.
    pub is_indirect: bool,
    /// Signals by index, as Linux guests have them.
    pub has_event_index: bool,
    /// The server's notes of what is under way are kept for the next one.
    pub has_inflight: bool,
    /// The server may tell that the configuration space has changed.
    pub has_channel: bool,
    /// Data of one request.
    pub data_bytes: u32,
    /// Features that are not agreed to, though they are offered.
    pub without: u64,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            queues: 1,
            queue_size: 128,
            is_indirect: true,
            has_event_index: true,
            has_inflight: true,
            has_channel: false,
            data_bytes: 128 << 10,
            without: 0,
        }
    }
}

/// A front end with its rings.
pub struct Client {
    options: ClientOptions,
    frontend: Frontend,
    memory: Arc<GuestMemoryMmap>,
    /// The region that the server made, with how it describes it.
    inflight: Option<(VhostUserInflight, File)>,
    /// On which the server tells of changes.
    channel: Option<UnixStream>,
    /// Of the server, all of them.
    pub offered: u64,
    /// The rings.
    pub rings: Vec<ClientRing>,
}

impl Client {
    /// Connects, agrees, and puts all rings into service.
    pub fn connect(socket: &Path, options: ClientOptions) -> Self {
        let layout =
            Layout { size: options.queue_size, data_bytes: options.data_bytes, is_indirect: options.is_indirect };
        let ring_bytes = layout.ring_bytes();
        let memory = Arc::new(make_memory(ring_bytes * usize::from(options.queues)));
        let rings = (0..options.queues).map(|queue| {
            let start = MEMORY_START + u64::from(queue) * ring_bytes as u64;
            ClientRing::new(Arc::clone(&memory), start, layout, options.has_event_index)
        });
        let rings = rings.collect();
        let frontend = connect(socket, options.queues);
        let mut client = Self { options, frontend, memory, inflight: None, channel: None, offered: 0, rings };
        client.agree();
        // As QEMU does, once: on a later connection it goes on with what it read, and wrote, on this one.
        client.config(CONFIG_BYTES);
        client.start(&vec![0; usize::from(options.queues)]);
        client
    }

    /// As QEMU does when its server has died: a new connection with the old memory and rings. Answers that the old server had
    /// published stay; the new one goes on behind them.
    pub fn reconnect(&mut self, socket: &Path) {
        self.frontend = connect(socket, self.options.queues);
        self.agree();
        let bases: Vec<u16> = self.rings.iter().map(ClientRing::used_index).collect();
        self.start(&bases);
    }

    /// The guest's memory.
    pub fn memory(&self) -> &GuestMemoryMmap {
        &self.memory
    }

    /// The protocol's own messages.
    pub fn frontend(&mut self) -> &mut Frontend {
        &mut self.frontend
    }

    /// The first bytes of the configuration space.
    pub fn config(&mut self, size: u32) -> Vec<u8> {
        let room = vec![0; size as usize];
        let read = self.frontend.get_config(0, size, VhostUserConfigFlags::WRITABLE, &room);
        read.expect("the configuration space").1
    }

    /// Sets one byte of the configuration space.
    pub fn set_config(&mut self, offset: u32, value: u8) {
        self.frontend.set_config(offset, VhostUserConfigFlags::WRITABLE, &[value]).expect("it may be written");
    }

    /// Stops a ring; from where it would go on.
    pub fn stop_ring(&mut self, queue: usize) -> u16 {
        self.frontend.get_vring_base(queue).expect("the ring was in service") as u16
    }

    /// Puts a stopped ring into service again.
    pub fn start_ring(&mut self, queue: usize, base: u16) {
        let region = self.memory.iter().next().expect("there is one");
        let user = VhostUserMemoryRegionInfo::from_guest_region(region).expect("it is of a file").userspace_addr;
        let ring = &self.rings[queue];
        let address = |guest: GuestAddress| user + (guest.0 - MEMORY_START);
        let data = VringConfigData {
            queue_max_size: self.options.queue_size,
            queue_size: self.options.queue_size,
            flags: 0,
            desc_table_addr: address(ring.descriptors),
            used_ring_addr: address(ring.used),
            avail_ring_addr: address(ring.available),
            log_addr: None,
        };
        let frontend = &mut self.frontend;
        frontend.set_vring_num(queue, self.options.queue_size).expect("a size");
        frontend.set_vring_addr(queue, &data).expect("addresses");
        frontend.set_vring_base(queue, base).expect("a base");
        frontend.set_vring_call(queue, &ring.call).expect("a call");
        frontend.set_vring_kick(queue, &ring.kick).expect("a kick");
        frontend.set_vring_enable(queue, true).expect("enabled");
    }

    fn agree(&mut self) {
        let frontend = &mut self.frontend;
        frontend.set_owner().expect("an owner");
        self.offered = frontend.get_features().expect("features");
        let without = self.options.without | if self.options.has_event_index { 0 } else { RING_EVENT_IDX };
        let offered = frontend.get_protocol_features().expect("protocol features");
        let channel = if self.options.has_channel {
            VhostUserProtocolFeatures::BACKEND_REQ
        } else {
            VhostUserProtocolFeatures::empty()
        };
        let wanted = VhostUserProtocolFeatures::MQ
            | channel
            | VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::REPLY_ACK
            | VhostUserProtocolFeatures::INFLIGHT_SHMFD;
        frontend.set_protocol_features(offered & wanted).expect("agreed");
        frontend.set_features(self.offered & !without | PROTOCOL_FEATURES).expect("agreed");
        frontend.set_hdr_flags(vhost::vhost_user::message::VhostUserHeaderFlag::NEED_REPLY);
        if self.options.has_channel {
            let (ours, theirs) = UnixStream::pair().expect("sockets");
            frontend.set_backend_request_fd(&theirs).expect("a channel");
            self.channel = Some(ours);
        }
    }

    /// Waits until the server tells that the configuration space has changed; false when it does not in time.
    pub fn wait_for_change(&mut self, patience: Duration) -> bool {
        let channel = self.channel.as_mut().expect("`has_channel`");
        channel.set_read_timeout(Some(patience)).expect("a timeout");
        let mut header = [0; 12];
        match channel.read_exact(&mut header) {
            // Request 2, version 1, nothing behind it (vhost-user protocol, back-end message types).
            Ok(()) => header[..4] == 2u32.to_ne_bytes() && header[4..] == [1u32, 0].map(u32::to_ne_bytes).concat(),
            Err(_) => false,
        }
    }

    fn start(&mut self, bases: &[u16]) {
        let region = self.memory.iter().next().expect("there is one");
        let region = VhostUserMemoryRegionInfo::from_guest_region(region).expect("it is of a file");
        self.frontend.set_mem_table(&[region]).expect("memory");
        if self.options.has_inflight {
            self.give_inflight();
        }
        for (queue, base) in bases.iter().enumerate() {
            self.start_ring(queue, *base);
        }
    }

    fn give_inflight(&mut self) {
        if self.inflight.is_none() {
            let wanted = VhostUserInflight::new(0, 0, self.options.queues, self.options.queue_size);
            self.inflight = Some(self.frontend.get_inflight_fd(&wanted).expect("a region"));
        }
        if let Some((about, file)) = &self.inflight {
            self.frontend.set_inflight_fd(about, file.as_raw_fd()).expect("the region");
        }
    }
}

fn connect(socket: &Path, queues: u16) -> Frontend {
    let begun = Instant::now();
    loop {
        match Frontend::connect(socket, u64::from(queues)) {
            Ok(frontend) => return frontend,
            Err(error) if begun.elapsed() > CONNECT_PATIENCE => panic!("connect to {}: {error}", socket.display()),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// As QEMU's `memory-backend-memfd` makes it.
fn make_memory(length: usize) -> GuestMemoryMmap {
    let file = memfd_create("guest", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("a memory file");
    ftruncate(&file, length as u64).expect("made longer");
    fcntl_add_seals(&file, SealFlags::GROW | SealFlags::SHRINK).expect("sealed");
    let file = FileOffset::new(File::from(file), 0);
    GuestMemoryMmap::from_ranges_with_files([(GuestAddress(MEMORY_START), length, Some(file))]).expect("mapped")
}
