#include "clefkit/media/decoder/probes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "clefkit/base/error.h"

namespace clefkit::decoder {
namespace {

long attempt(Probe probe) {
  switch (probe) {
    case Probe::kOpenFile:
      return open("/etc/passwd", O_RDONLY);
    case Probe::kOpenSocket:
      return socket(AF_INET, SOCK_STREAM, 0);
    case Probe::kExecute:
      return execl("/bin/true", "true", static_cast<char*>(nullptr));
    case Probe::kFork:
      return fork();
    case Probe::kSignalParent:
      return kill(getppid(), 0);
    case Probe::kExecutableMemory: {
      void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      return memory == MAP_FAILED ? -1 : 0;
    }
    default:
      return 0;
  }
}

}  // namespace

void run_probe(Probe probe) {
  if (probe == Probe::kCrash) std::raise(SIGSEGV);
  if (probe == Probe::kSleep)
    for (;;) sleep(1);
  if (probe == Probe::kSpin)
    for (volatile unsigned count = 0;;) count = count + 1;
  if (probe == Probe::kMemory) {
    std::vector<std::vector<char>> memory;
    for (;;) memory.emplace_back(std::size_t{1} << 24, 'x');
  }
  errno = 0;
  const long result = attempt(probe);
  throw_error(ErrorCode::kInvalidArgument, "", "{}", result < 0 ? std::strerror(errno) : "allowed");
}

}  // namespace clefkit::decoder
