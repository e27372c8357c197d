//! Whether standard output was closed when the program started.
//!
//! The standard library opens `/dev/null` for a closed descriptor before `main`, for reading and writing, and loses what
//! is written. A redirection by a shell opens it for writing alone. Other programs open it for both when they discard the
//! output of a child, so only the children of a shell whose own output is another file count.

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::path::Path;

    /// Shells, by the name of their process.
    const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "busybox", "fish"];

    /// Whether standard output of a process is `/dev/null`, opened for reading and writing.
    fn is_null_for_both(process: &str) -> bool {
        let file = |name: &str| Path::new("/proc").join(process).join(name);
        let null = fs::read_link(file("fd/1")).is_ok_and(|path| path == Path::new("/dev/null"));
        let flags = fs::read_to_string(file("fdinfo/1")).unwrap_or_default();
        let flags = flags.lines().find_map(|line| line.strip_prefix("flags:"));
        // proc(5): octal; the last two bits are the access mode, of which 2 is both.
        let mode = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).map(|flags| flags & 3);
        null && mode == Some(2)
    }

    pub(super) fn is_closed() -> bool {
        if !is_null_for_both("self") {
            return false;
        }
        let parent = std::os::unix::process::parent_id().to_string();
        let name = fs::read_to_string(Path::new("/proc").join(&parent).join("comm")).unwrap_or_default();
        SHELLS.contains(&name.trim()) && !is_null_for_both(&parent)
    }
}

/// Checks that an answer can be written to standard output, as far as the system says so.
pub fn check_stdout() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    if linux::is_closed() {
        return Err(std::io::Error::other("standard output is closed"));
    }
    Ok(())
}
