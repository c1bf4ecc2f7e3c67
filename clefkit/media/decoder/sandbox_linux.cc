#include <fcntl.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>

#include "clefkit/base/error.h"
#include "clefkit/media/decoder/resource_limits.h"
#include "clefkit/media/decoder/sandbox.h"

namespace clefkit::decoder {
namespace {

[[noreturn]] void refuse(const char* call, int error) {
  throw_error(ErrorCode::kUnavailable, "sandbox", "{}: {}, expected success", call,
              std::strerror(error));
}

void check(const char* call, int result) {
  if (result != 0) refuse(call, result < 0 ? -result : result);
}

// What computing on memory and reading and writing open files takes. Everything is 64-bit and on
// numbers that were open before.
constexpr int kAllowed[] = {SCMP_SYS(read),
                            SCMP_SYS(write),
                            SCMP_SYS(readv),
                            SCMP_SYS(writev),
                            SCMP_SYS(close),
                            SCMP_SYS(brk),
                            SCMP_SYS(munmap),
                            SCMP_SYS(mremap),
                            SCMP_SYS(madvise),
                            SCMP_SYS(futex),
                            SCMP_SYS(exit),
                            SCMP_SYS(exit_group),
                            SCMP_SYS(rt_sigreturn),
                            SCMP_SYS(rt_sigaction),
                            SCMP_SYS(rt_sigprocmask),
                            SCMP_SYS(sigaltstack),
                            SCMP_SYS(getpid),
                            SCMP_SYS(gettid),
                            SCMP_SYS(clock_gettime),
                            SCMP_SYS(gettimeofday),
                            SCMP_SYS(clock_nanosleep),
                            SCMP_SYS(nanosleep),
                            SCMP_SYS(sched_yield),
                            SCMP_SYS(getrandom),
                            SCMP_SYS(fstat),
                            SCMP_SYS(newfstatat),
                            SCMP_SYS(restart_syscall),
                            SCMP_SYS(sysinfo),
                            SCMP_SYS(sched_getaffinity)};

// Nothing that decodes asks for these, so whoever does is not decoding any more. All others fail
// with EPERM, which a library that merely looks for a file or a device copes with.
constexpr int kDeadly[] = {SCMP_SYS(execve),
                           SCMP_SYS(execveat),
                           SCMP_SYS(fork),
                           SCMP_SYS(vfork),
                           SCMP_SYS(clone),
                           SCMP_SYS(clone3),
                           SCMP_SYS(socket),
                           SCMP_SYS(socketpair),
                           SCMP_SYS(connect),
                           SCMP_SYS(ptrace),
                           SCMP_SYS(bpf),
                           SCMP_SYS(process_vm_readv),
                           SCMP_SYS(unshare),
                           SCMP_SYS(process_vm_writev),
                           SCMP_SYS(mount),
                           SCMP_SYS(io_uring_setup),
                           SCMP_SYS(kill),
                           SCMP_SYS(tkill),
                           SCMP_SYS(pidfd_send_signal)};

[[maybe_unused]] void filter_system_calls() {
  const std::unique_ptr<void, decltype(&seccomp_release)> filter(
      seccomp_init(SCMP_ACT_ERRNO(EPERM)), seccomp_release);
  if (!filter) refuse("seccomp_init", ENOMEM);
  for (const int call : kAllowed)
    check("seccomp_rule_add", seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 0));
  for (const int call : kDeadly)
    check("seccomp_rule_add", seccomp_rule_add(filter.get(), SCMP_ACT_KILL_PROCESS, call, 0));
  // Memory, but none that runs.
  for (const int call : {SCMP_SYS(mmap), SCMP_SYS(mprotect)})
    check("seccomp_rule_add", seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 1,
                                               SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)));
  // abort() signals itself.
  check("seccomp_rule_add",
        seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                         SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(getpid()))));
  check("seccomp_load", seccomp_load(filter.get()));
}

}  // namespace

void close_everything() {
  if (close_range(3, ~0U, 0) != 0) {  // Linux before 5.9.
    const long limit = sysconf(_SC_OPEN_MAX);
    for (int file = 3; file < limit; ++file) close(file);
  }
  const pid_t parent = getppid();
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) refuse("prctl(PR_SET_PDEATHSIG)", errno);
  if (getppid() != parent) _exit(1);
  if (prctl(PR_SET_DUMPABLE, 0) != 0) refuse("prctl(PR_SET_DUMPABLE)", errno);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) refuse("prctl(PR_SET_NO_NEW_PRIVS)", errno);
}

void enter_sandbox(std::uint64_t memory_bytes, std::uint64_t cpu_seconds) {
  limit_resources(memory_bytes, cpu_seconds);
#ifndef CLEFKIT_SANITIZED  // A sanitizer's run time opens /proc when an exception is thrown.
  filter_system_calls();
#endif
}

}  // namespace clefkit::decoder
