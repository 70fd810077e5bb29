//! What differs from one kind of processor to another: QEMU's machine, and what Debian calls its packages for it.

/// A guest's processors, which are always emulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// `x86_64`.
    Amd64,
    /// `aarch64`.
    Arm64,
}

impl Architecture {
    /// This host's, whose programs run in a guest too.
    pub const HOST: Self = if cfg!(target_arch = "aarch64") { Self::Arm64 } else { Self::Amd64 };

    /// Debian's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// QEMU's program, and Debian's package of it.
    pub(super) fn qemu(self) -> (&'static str, &'static str) {
        match self {
            Self::Amd64 => ("qemu-system-x86_64", "qemu-system-x86"),
            Self::Arm64 => ("qemu-system-aarch64", "qemu-system-arm"),
        }
    }

    pub(super) fn machine(self) -> &'static str {
        match self {
            Self::Amd64 => "pc",
            Self::Arm64 => "virt",
        }
    }

    /// What later processors have is slower where it is emulated: with all of it (`max`) an amd64 guest that installs packages takes
    /// 9 % more of the host's processors. `rdrand` gives the kernel its first random bytes; `vme` cannot be emulated.
    pub(super) fn processor(self) -> &'static str {
        match self {
            Self::Amd64 => "Nehalem,vme=off,+rdrand",
            Self::Arm64 => "cortex-a53",
        }
    }

    /// The serial port that the kernel's messages go to.
    pub(super) fn console(self) -> &'static str {
        match self {
            Self::Amd64 => "ttyS0",
            Self::Arm64 => "ttyAMA0",
        }
    }
}
