//! Debian packages, by `dpkg-deb` itself: several packages come out of one workspace, their scripts are the same few lines of
//! `init-system-helpers` that debhelper writes, and nothing has to be compiled first to make them (docs/adr).

use crate::package_version::{last_commit, remove_others, version};
use crate::packages;
use crate::shell::{captured, cargo, must, program, root};
use crate::workspace::target;
use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to make.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Into this folder, which then has of each package this one alone
    #[arg(long, value_name = "FOLDER", default_value = "target/debian")]
    output: PathBuf,
    /// The profile of the programs: `release`, or `dev`, which is built sooner
    #[arg(long, default_value = "release")]
    profile: String,
    /// Pack the programs as they are: something else has built them
    #[arg(long)]
    built: bool,
    /// Debian's revision, for another build of the same commit: higher replaces lower
    #[arg(long, default_value_t = 1)]
    revision: u32,
    /// Only these packages; may be given several times
    #[arg(long, value_name = "PACKAGE", value_parser = PossibleValuesParser::new(PACKAGES.iter().map(|package| package.name)))]
    only: Vec<String>,
}

/// A package: what goes where, besides its program's manual pages and completions.
struct Package {
    /// Also its program's name.
    name: &'static str,
    summary: &'static str,
    /// One paragraph, in lines that Debian's control file takes.
    description: &'static [&'static str],
    section: &'static str,
    /// Of ours, in the same version.
    depends: &'static [&'static str],
    suggests: &'static str,
    /// File in the repository, and folder in the package.
    files: &'static [(&'static str, &'static str)],
    /// Paths of files that are the administrator's from then on.
    conffiles: &'static [&'static str],
    /// Has scripts in packaging/debian.
    has_scripts: bool,
}

const UNITS: &str = "usr/lib/systemd/system";

const PACKAGES: &[Package] = &[
    Package {
        name: "minerva-ctl",
        summary: "tool for operators and tenants of Minerva",
        description: &[
            "Shows who uses which disk and which share each has and why, puts every",
            "knob back, and lets tenants step back, spend credits and ask when to begin.",
        ],
        section: "admin",
        depends: &[],
        suggests: "minervad | minerva-agent",
        files: &[],
        conffiles: &[],
        has_scripts: false,
    },
    Package {
        name: "minervad",
        summary: "daemon that steers the disks that virtual machines and services share",
        description: &[
            "Watches every tenant's disk use and gives the kernel weights that reward",
            "sparing users. Installed, it decides and explains and writes nothing, until",
            "the administrator sets mode = \"enforce\".",
        ],
        section: "admin",
        // It puts every knob back when the unit has ended.
        depends: &["minerva-ctl"],
        suggests: "",
        files: &[("packaging/minervad.service", UNITS), ("config/minerva.toml", "etc/minerva")],
        conffiles: &["/etc/minerva/minerva.toml"],
        has_scripts: true,
    },
    Package {
        name: "minerva-agent",
        summary: "carries requests of a guest's programs to Minerva on the host",
        description: &[
            "For virtual machines and containers on a host that Minerva steers. Programs",
            "find it at its socket and take it for the daemon.",
        ],
        section: "admin",
        depends: &[],
        suggests: "minerva-ctl",
        files: &[("packaging/minerva-agent.service", UNITS), ("packaging/minerva-agent.socket", UNITS)],
        conffiles: &[],
        has_scripts: true,
    },
    Package {
        name: "minerva-blk",
        summary: "serves disks of virtual machines by contracts, weights and priorities",
        description: &[
            "A vhost-user-blk server for QEMU guests, which orders single requests of all",
            "of them. It starts once /etc/minerva/blk.toml names disks; an upgrade goes",
            "on with them while guests run.",
        ],
        section: "admin",
        depends: &[],
        suggests: "minerva-ctl, minervad",
        files: &[("packaging/minerva-blk.service", UNITS), ("config/blk.toml", "usr/share/doc/minerva-blk/examples")],
        conffiles: &[],
        has_scripts: true,
    },
    Package {
        name: "minerva-fs",
        summary: "pool of memory and fast disk for all tenants of a host",
        description: &[
            "Gives each tenant a file system in memory and one on a disk set aside, under",
            "quotas, and moves files to slower disks when those are quiet. It starts once",
            "/etc/minerva/fs.toml names tenants.",
        ],
        section: "admin",
        depends: &[],
        suggests: "minerva-ctl, minervad, virtiofsd",
        files: &[
            ("packaging/minerva-fs.service", UNITS),
            ("packaging/minerva-virtiofs@.service", UNITS),
            ("config/fs.toml", "usr/share/doc/minerva-fs/examples"),
        ],
        conffiles: &[],
        has_scripts: true,
    },
];

/// Scripts that a package may have.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Builds the programs and packs them.
pub(crate) fn run(options: &Options) -> Result<bool> {
    packages::ensure(packages::PACKAGE)?;
    let is_wanted =
        |package: &&Package| options.only.is_empty() || options.only.iter().any(|name| name == package.name);
    let wanted: Vec<&Package> = PACKAGES.iter().filter(is_wanted).collect();
    if !options.built {
        let programs = wanted.iter().flat_map(|package| ["--bin", package.name]);
        must(cargo().args(["build", "--quiet", "--profile", &options.profile]).args(programs))?;
    }
    let output = root().join(&options.output);
    fs::create_dir_all(&output).with_context(|| format!("make {}", output.display()))?;
    let folder = if options.profile == "dev" { "debug" } else { &options.profile };
    let programs = target()?.join(folder);
    let version = version(&root(), options.revision)?;
    for package in wanted {
        // Packages of a build for development are for guests with emulated processors, which are slow to unpack.
        let compression = if options.profile == "dev" { ["-Znone", "-z0"] } else { ["-Zxz", "-z6"] };
        let path = pack(package, &version, &programs, &output, compression)?;
        remove_others(&output, package.name, &path)?;
        println!("{}", path.display());
    }
    Ok(true)
}

/// Puts one package together; where it is.
fn pack(package: &Package, version: &str, programs: &Path, output: &Path, compression: [&str; 2]) -> Result<PathBuf> {
    let name = package.name;
    // A folder of its own: two tests may pack at once.
    let scratch = tempfile::tempdir_in(target()?).context("make a directory for a package")?;
    let scratch = scratch.path();
    let tree = scratch.join("tree");
    let installed = tree.join("usr/bin").join(name);
    put(&programs.join(name), &installed, 0o755)?;
    captured(program("strip").arg("--strip-unneeded").arg(&installed))?;
    for (file, folder) in package.files {
        let from = root().join(file);
        put(&from, &tree.join(folder).join(from.file_name().unwrap_or_default()), 0o644)?;
    }
    documents(name, &tree)?;
    let control = tree.join("DEBIAN");
    fs::create_dir_all(&control).with_context(|| format!("make {}", control.display()))?;
    let text = control_file(package, version, &libraries(scratch, &installed)?, &architecture()?);
    write(&control.join("control"), &text)?;
    if !package.conffiles.is_empty() {
        write(&control.join("conffiles"), format!("{}\n", package.conffiles.join("\n")))?;
    }
    for script in SCRIPTS.iter().filter(|_| package.has_scripts) {
        put(&root().join(format!("packaging/debian/{name}.{script}")), &control.join(script), 0o755)?;
    }
    let path = output.join(format!("{name}_{version}_{}.deb", architecture()?));
    let mut archive = program("dpkg-deb");
    // The same sources give the same bytes: no time but that of the last commit goes in, and no user's name.
    archive.arg("--root-owner-group").args(compression).arg("--build").arg(&tree).arg(&path);
    archive.env("SOURCE_DATE_EPOCH", last_commit(&root())?);
    captured(&mut archive)?;
    Ok(path)
}

/// Manual pages, completions, licence and changelog.
fn documents(name: &str, tree: &Path) -> Result<()> {
    let pages = root().join("docs/man");
    for entry in fs::read_dir(&pages).with_context(|| format!("list {}", pages.display()))? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_its_own = file.strip_prefix(name).is_some_and(|rest| rest.starts_with('.') || rest.starts_with('-'));
        if is_its_own {
            compress(&path, &tree.join("usr/share/man/man1").join(file))?;
        }
    }
    let completions = root().join("packaging/completions");
    for (file, place) in [
        (format!("{name}.bash"), format!("usr/share/bash-completion/completions/{name}")),
        (format!("_{name}"), format!("usr/share/zsh/vendor-completions/_{name}")),
        (format!("{name}.fish"), format!("usr/share/fish/vendor_completions.d/{name}.fish")),
    ] {
        put(&completions.join(file), &tree.join(place), 0o644)?;
    }
    let folder = tree.join("usr/share/doc").join(name);
    put(&root().join("LICENSE"), &folder.join("copyright"), 0o644)?;
    compress(&root().join("CHANGELOG.md"), &folder.join("changelog"))
}

fn control_file(package: &Package, version: &str, libraries: &str, architecture: &str) -> String {
    let Package { name, summary, section, suggests, .. } = package;
    let ours = package.depends.iter().map(|name| format!(", {name} (= {version})")).collect::<String>();
    let suggests = if suggests.is_empty() { String::new() } else { format!("Suggests: {suggests}\n") };
    let description: String = package.description.iter().map(|line| format!(" {line}\n")).collect();
    format!(
        "Package: {name}\nVersion: {version}\nArchitecture: {architecture}\nSection: {section}\nPriority: optional\n\
         Maintainer: Minerva maintainers <maintainers@minerva.invalid>\nDepends: {libraries}{ours}\n{suggests}\
         Description: {summary}\n{description}"
    )
}

/// The shared libraries that a program needs, as Debian names and dates them.
fn libraries(scratch: &Path, installed: &Path) -> Result<String> {
    // It wants to be called where a source package is.
    write(&scratch.join("debian/control"), "Source: minerva\n\nPackage: minerva\nArchitecture: any\n")?;
    let mut command = Command::new("dpkg-shlibdeps");
    let text = captured(command.args(["-O", "-e"]).arg(installed).current_dir(scratch))?;
    let found = text.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    found.map(str::to_owned).context("dpkg-shlibdeps names no library")
}

fn architecture() -> Result<String> {
    captured(program("dpkg").arg("--print-architecture"))
}

fn put(from: &Path, to: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let bytes = fs::read(from).with_context(|| format!("read {}", from.display()))?;
    write(to, bytes)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).with_context(|| format!("open {} to all", to.display()))
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    }
    fs::write(path, bytes).with_context(|| format!("write {}", path.display()))
}

/// As Debian wants its documents: `gzip -9`, without a name and a time.
fn compress(from: &Path, to: &Path) -> Result<()> {
    put(from, to, 0o644)?;
    captured(program("gzip").args(["-9", "--no-name"]).arg(to)).map(drop)
}
