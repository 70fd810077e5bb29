//! Loop devices: a block device of the kernel on top of a file.

use crate::error::{At, LabError, Result};
use linux_raw_sys::loop_device as raw;
use minerva_model::DeviceId;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{self, IntegerSetter, NoArg, Setter};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const CONTROL: &str = "/dev/loop-control";
/// Somebody else may take the free number between the two calls; nobody does so this often.
const ATTEMPTS: u32 = 64;
/// Above the descriptors in ordinary use. See [`LoopDevice::attach`].
const DESCRIPTOR_MIN: i32 = 512;

/// An attached loop device. Dropping it detaches.
#[derive(Debug)]
pub(crate) struct LoopDevice {
    /// Held open because the kernel detaches at the last close, so that a killed owner leaves no device behind.
    descriptor: Option<OwnedFd>,
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
}

impl LoopDevice {
    /// Attaches the first free loop device to `file`, with direct I/O so that nothing is cached below the elevator.
    ///
    /// The descriptor gets a high number: a process that is killed closes its descriptors in ascending order, and the
    /// FUSE connection must go before the device, whose last close waits for dirty pages that nobody would serve.
    ///
    /// Partitions go with the device where it may have some.
    pub(crate) fn attach(file: impl AsFd, backing: &Path, has_partitions: bool) -> Result<Self> {
        let control = rustix::fs::open(CONTROL, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).at("open", CONTROL)?;
        for _ in 0..ATTEMPTS {
            let number = free_number(&control).at("find a free loop device through", CONTROL)?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let low = rustix::fs::open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).at("open", &path)?;
            let descriptor = rustix::io::fcntl_dupfd_cloexec(&low, DESCRIPTOR_MIN).at("hold open", &path)?;
            drop(low);
            match configure(&descriptor, file.as_fd(), backing, has_partitions) {
                Ok(()) => return Ok(Self { descriptor: Some(descriptor), number, path }),
                Err(Errno::BUSY) => {}
                Err(error) => return Err(error).at("attach", &path),
            }
        }
        Err(Errno::BUSY).at("find a loop device that stays free through", CONTROL)
    }

    /// `loop3`, as in `/sys/block`.
    pub(crate) fn name(&self) -> String {
        format!("loop{}", self.number)
    }

    /// The number by which the cgroup files call it.
    pub(crate) fn id(&self) -> Result<DeviceId> {
        let path = format!("/sys/block/{}/dev", self.name());
        let text = fs::read_to_string(&path).at("read", &path)?;
        text.trim().parse().map_err(|()| LabError::BadPlan(format!("{path} holds `{}`, no device number", text.trim())))
    }

    /// Whether the kernel granted direct I/O to the backing file.
    pub(crate) fn is_direct(&self) -> bool {
        fs::read_to_string(format!("/sys/block/{}/loop/dio", self.name())).is_ok_and(|text| text.trim() == "1")
    }

    /// Detaches, and waits until the device has let go of its file or `patience` is over because others hold it open.
    pub(crate) fn detach(&mut self, patience: Duration) -> bool {
        let Some(descriptor) = self.descriptor.take() else { return true };
        clear(&descriptor);
        drop(descriptor);
        wait_until_detached(self.number, patience)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        self.detach(Duration::from_secs(2));
    }
}

/// Detaches loop device `number`, whoever made it. False if somebody still holds it open.
pub(crate) fn detach_leftover(number: u32, patience: Duration) -> bool {
    let Ok(descriptor) = rustix::fs::open(format!("/dev/loop{number}"), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
    else {
        return true;
    };
    clear(&descriptor);
    drop(descriptor);
    wait_until_detached(number, patience)
}

/// Every attached loop device with the file it lies on, as the kernel names that file.
pub(crate) fn attached() -> Vec<(u32, PathBuf)> {
    let Ok(entries) = fs::read_dir("/sys/block") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.strip_prefix("loop")?.parse().ok());
    numbers.filter_map(|number: u32| Some((number, backing_file(number)?))).collect()
}

fn backing_file(number: u32) -> Option<PathBuf> {
    let text = fs::read_to_string(format!("/sys/block/loop{number}/loop/backing_file")).ok()?;
    // The kernel marks files whose mount it cannot reach any more.
    Some(PathBuf::from(text.trim_end().trim_end_matches(" (deleted)")))
}

fn wait_until_detached(number: u32, patience: Duration) -> bool {
    let start = Instant::now();
    while backing_file(number).is_some() {
        if start.elapsed() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

fn free_number(control: impl AsFd) -> rustix::io::Result<u32> {
    struct GetFree;
    // SAFETY: LOOP_CTL_GET_FREE takes no argument, writes no memory and returns the number.
    unsafe impl ioctl::Ioctl for GetFree {
        type Output = u32;
        const IS_MUTATING: bool = false;
        fn opcode(&self) -> ioctl::Opcode {
            raw::LOOP_CTL_GET_FREE
        }
        fn as_ptr(&mut self) -> *mut core::ffi::c_void {
            core::ptr::null_mut()
        }
        unsafe fn output_from_ptr(
            output: ioctl::IoctlOutput,
            _: *mut core::ffi::c_void,
        ) -> rustix::io::Result<Self::Output> {
            u32::try_from(output).map_err(|_| Errno::INVAL)
        }
    }
    // SAFETY: see the implementation above.
    unsafe { ioctl::ioctl(control, GetFree) }
}

fn configure(device: impl AsFd, file: impl AsFd, backing: &Path, has_partitions: bool) -> rustix::io::Result<()> {
    // SAFETY: `loop_config` is plain integers and arrays of them, for which all zeros is valid and means "default".
    let mut config: raw::loop_config = unsafe { core::mem::zeroed() };
    config.fd = file.as_fd().as_raw_fd() as u32;
    config.block_size = 512;
    config.info.lo_flags = raw::LO_FLAGS_DIRECT_IO as u32 | raw::LO_FLAGS_AUTOCLEAR as u32;
    if has_partitions {
        config.info.lo_flags |= raw::LO_FLAGS_PARTSCAN as u32;
    }
    // The name is only for people who run `losetup`; the last byte stays zero.
    let name = backing.as_os_str().as_encoded_bytes();
    for (to, from) in config.info.lo_file_name.iter_mut().zip(name.iter().take(63)) {
        *to = *from;
    }
    // SAFETY: LOOP_CONFIGURE reads one `loop_config`.
    unsafe { ioctl::ioctl(device, Setter::<{ raw::LOOP_CONFIGURE }, raw::loop_config>::new(config)) }
}

/// A device that is not attached any more is what was wanted, so the answer does not matter.
fn clear(device: impl AsFd) {
    // SAFETY: LOOP_CLR_FD takes no argument.
    let _: rustix::io::Result<()> = unsafe { ioctl::ioctl(device, NoArg::<{ raw::LOOP_CLR_FD }>::new()) };
}

/// Turns the kernel's direct I/O for the backing file on; `attach` asks for it already, this is for kernels that
/// ignore the flag there.
pub(crate) fn set_direct(device: &LoopDevice) -> Result<()> {
    let Some(descriptor) = &device.descriptor else { return Ok(()) };
    // SAFETY: LOOP_SET_DIRECT_IO takes the integer 0 or 1.
    unsafe { ioctl::ioctl(descriptor, IntegerSetter::<{ raw::LOOP_SET_DIRECT_IO }>::new_usize(1)) }
        .at("turn direct I/O on for", &device.path)
}
