//! The filter of system calls (seccomp): those of ordinary programs, of shells and of libraries that look up names.
//!
//! It is a list of what is permitted, so that a new call of Linux is not. The others fail with ENOSYS, as on an older system: libraries
//! then use an older call. Among them are those that load code into the system, change its clock, mounts or swap, look into other processes, or
//! create namespaces: they stay shut where a capability or a hole would open them.

use std::io;

use super::Rights;

/// Installs the filter for this thread. Returns whether there is one for this processor and system.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
pub(super) fn apply(rights: Rights) -> io::Result<bool> {
    use std::collections::BTreeMap;

    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule,
    };

    let bad = |why: seccompiler::BackendError| io::Error::other(why);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        calls::PERMITTED.iter().map(|&call| (call, Vec::new())).collect();
    // Processes and threads, but no namespaces.
    let new = SeccompCmpOp::MaskedEq(NAMESPACES);
    let no_namespace = SeccompCondition::new(0, SeccompCmpArgLen::Qword, new, 0).map_err(bad)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![no_namespace]).map_err(bad)?]);
    if rights.namespaces {
        rules.insert(libc::SYS_setns, Vec::new());
    }
    let no_such_call = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let architecture = std::env::consts::ARCH.try_into().map_err(bad)?;
    let filter = SeccompFilter::new(rules, no_such_call, SeccompAction::Allow, architecture).map_err(bad)?;
    let program = BpfProgram::try_from(filter).map_err(bad)?;
    match seccompiler::apply_filter(&program) {
        Ok(()) => Ok(true),
        // A system without filters, or a service that may install none, as it has that of its manager.
        Err(seccompiler::Error::Prctl(_) | seccompiler::Error::Seccomp(_)) => Ok(false),
        Err(why) => Err(io::Error::other(why)),
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
pub(super) fn apply(_: Rights) -> io::Result<bool> {
    Ok(false)
}

/// Flags of clone(2) that create namespaces.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
const NAMESPACES: u64 = (libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWUTS) as u64;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
mod calls {
    use libc::*;

    #[rustfmt::skip]
    pub(super) const PERMITTED: &[c_long] = &[
        // Files.
        SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_lseek, SYS_openat, SYS_close, SYS_close_range,
        SYS_fstat, SYS_newfstatat, SYS_statx, SYS_statfs, SYS_fstatfs, SYS_getdents64, SYS_readlinkat, SYS_faccessat, SYS_faccessat2,
        SYS_fcntl, SYS_flock, SYS_ioctl, SYS_dup, SYS_dup3, SYS_pipe2, SYS_fsync, SYS_fdatasync, SYS_ftruncate, SYS_fadvise64,
        SYS_unlinkat, SYS_renameat2, SYS_mkdirat, SYS_linkat, SYS_symlinkat, SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat,
        SYS_utimensat, SYS_umask, SYS_getcwd, SYS_chdir, SYS_fchdir, SYS_copy_file_range, SYS_sendfile, SYS_memfd_create,
        SYS_getxattr, SYS_lgetxattr, SYS_fgetxattr, SYS_inotify_init1, SYS_inotify_add_watch, SYS_inotify_rm_watch,
        // Memory.
        SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_brk, SYS_membarrier,
        // Processes and threads: `clone` has a condition, and libraries do without `clone3`.
        SYS_execve, SYS_exit, SYS_exit_group, SYS_wait4, SYS_waitid, SYS_kill, SYS_tgkill, SYS_getpid, SYS_getppid, SYS_gettid,
        SYS_getpgid, SYS_setpgid, SYS_getsid, SYS_setsid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getresuid,
        SYS_getresgid, SYS_getgroups, SYS_capget, SYS_prctl, SYS_prlimit64, SYS_getrusage, SYS_sysinfo, SYS_uname, SYS_times,
        SYS_sched_yield, SYS_sched_getaffinity, SYS_getcpu, SYS_set_tid_address, SYS_set_robust_list, SYS_get_robust_list, SYS_rseq,
        SYS_futex, SYS_pidfd_open, SYS_pidfd_send_signal, SYS_getpriority,
        // Signals.
        SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_rt_sigpending,
        SYS_sigaltstack, SYS_restart_syscall, SYS_signalfd4,
        // Time.
        SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday, SYS_setitimer, SYS_getitimer,
        SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime,
        // Sockets.
        SYS_socket, SYS_socketpair, SYS_bind, SYS_connect, SYS_listen, SYS_accept, SYS_accept4, SYS_getsockname, SYS_getpeername,
        SYS_setsockopt, SYS_getsockopt, SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg, SYS_shutdown,
        // Waiting, and random numbers.
        SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_eventfd2, SYS_getrandom,
        // Names that newer processors do not have.
        #[cfg(target_arch = "x86_64")] SYS_open,
        #[cfg(target_arch = "x86_64")] SYS_stat,
        #[cfg(target_arch = "x86_64")] SYS_lstat,
        #[cfg(target_arch = "x86_64")] SYS_access,
        #[cfg(target_arch = "x86_64")] SYS_readlink,
        #[cfg(target_arch = "x86_64")] SYS_getdents,
        #[cfg(target_arch = "x86_64")] SYS_creat,
        #[cfg(target_arch = "x86_64")] SYS_unlink,
        #[cfg(target_arch = "x86_64")] SYS_rename,
        #[cfg(target_arch = "x86_64")] SYS_renameat,
        #[cfg(target_arch = "x86_64")] SYS_mkdir,
        #[cfg(target_arch = "x86_64")] SYS_rmdir,
        #[cfg(target_arch = "x86_64")] SYS_link,
        #[cfg(target_arch = "x86_64")] SYS_symlink,
        #[cfg(target_arch = "x86_64")] SYS_chmod,
        #[cfg(target_arch = "x86_64")] SYS_chown,
        #[cfg(target_arch = "x86_64")] SYS_lchown,
        #[cfg(target_arch = "x86_64")] SYS_dup2,
        #[cfg(target_arch = "x86_64")] SYS_pipe,
        #[cfg(target_arch = "x86_64")] SYS_poll,
        #[cfg(target_arch = "x86_64")] SYS_select,
        #[cfg(target_arch = "x86_64")] SYS_epoll_create,
        #[cfg(target_arch = "x86_64")] SYS_epoll_wait,
        #[cfg(target_arch = "x86_64")] SYS_eventfd,
        #[cfg(target_arch = "x86_64")] SYS_fork,
        #[cfg(target_arch = "x86_64")] SYS_vfork,
        #[cfg(target_arch = "x86_64")] SYS_getpgrp,
        #[cfg(target_arch = "x86_64")] SYS_arch_prctl,
        #[cfg(target_arch = "x86_64")] SYS_time,
        #[cfg(target_arch = "x86_64")] SYS_alarm,
        #[cfg(target_arch = "x86_64")] SYS_utime,
    ];
}
