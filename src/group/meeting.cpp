// SPDX-License-Identifier: Apache-2.0
#include "group/meeting.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "device/group.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr auto kPause = std::chrono::milliseconds(5);
constexpr std::string_view kSession = "start-";
// Bytes of the lock: who holds the first is rank 0, who holds the second has written the name of its folder.
constexpr off_t kLeads = 0, kWritten = 1;
constexpr off_t kNameAt = 8;

struct flock byte_lock(off_t byte) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

bool take(int file, off_t byte) {
  struct flock lock = byte_lock(byte);
  return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

bool is_taken(int file, off_t byte) {
  struct flock lock = byte_lock(byte);
  return fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/// Asks until it is so; false where the time is over.
template <typename Condition>
bool within(int timeout_ms, const Condition& condition) {
  const double end = now_ms() + timeout_ms;
  while (!condition()) {
    if (now_ms() > end) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

std::string seconds(int ms) { return fmt::format("{:g} s", ms / 1000.0); }

std::string new_name() {
  std::random_device source;
  return fmt::format("{}{:08x}{:08x}", kSession, source(), source());
}

void make_folder(const std::string& path) {
  std::error_code status;
  fs::create_directories(path, status);
  if (status)
    throw GroupError(fmt::format("the folder {} where the ranks meet cannot be made: {}", path, status.message()),
                     "name another in HONE_MEETING");
}

constexpr std::string_view kCome = "start all ranks, or wait longer: HONE_RANK_TIMEOUT is in seconds";

}  // namespace

std::string meeting_folder(const Rank& rank) {
  if (!rank.folder.empty()) return rank.folder;
  std::error_code status;
  fs::path temporary = fs::temp_directory_path(status);
  if (status) temporary = "/tmp";
  return (temporary / fmt::format("hone-{}-{}", getuid(), hash_hex(rank.job).substr(0, 16))).string();
}

Meeting::Meeting(const Rank& rank, const std::string& hello, int timeout_ms)
    : rank_(rank), home_(meeting_folder(rank)), timeout_ms_(timeout_ms) {
  make_folder(home_);
  const std::string path = home_ + "/lock";
  constexpr mode_t kMode = 0600;
  lock_.descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode);
  if (lock_.descriptor < 0)
    throw GroupError(fmt::format("{} cannot be opened", path), "name another folder in HONE_MEETING");
  if (rank.rank == 0) open_session();
  else find_session();
  say(hello);
  wait_for_all(hello);
}

Meeting::~Meeting() {
  std::error_code ignored;
  if (rank_.rank == 0) fs::remove_all(session_, ignored);
}

LockFile::~LockFile() {
  if (descriptor >= 0) close(descriptor);
}

void Meeting::open_session() {
  if (!within(timeout_ms_, [&] { return take(lock_.descriptor, kLeads); }))
    throw GroupError(fmt::format("another rank 0 holds {}", home_),
                     "wait until that run has ended, or name another folder in HONE_MEETING");
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(home_, ignored))
    if (entry.path().filename().string().starts_with(kSession)) fs::remove_all(entry.path(), ignored);
  const std::string name = new_name();
  session_ = home_ + "/" + name;
  make_folder(session_);
  const bool written = pwrite(lock_.descriptor, name.data(), name.size(), kNameAt) == static_cast<ssize_t>(name.size());
  if (!written || !take(lock_.descriptor, kWritten))
    throw GroupError(fmt::format("{}/lock cannot be written", home_), "name another folder in HONE_MEETING");
}

void Meeting::find_session() {
  const auto found = [&] {
    if (!is_taken(lock_.descriptor, kWritten)) return false;
    std::string name(kSession.size() + 16, '\0');
    if (pread(lock_.descriptor, name.data(), name.size(), kNameAt) != static_cast<ssize_t>(name.size())) return false;
    session_ = home_ + "/" + name;
    return fs::exists(session_);
  };
  if (!within(timeout_ms_, found))
    throw GroupError(fmt::format("rank 0 of {} has not come within {} ({} waited in {})", rank_.size,
                                 seconds(timeout_ms_), rank_.rank, home_),
                     std::string(kCome));
}

void Meeting::say(const std::string& hello) const {
  const std::string place = fmt::format("{}/rank{}", session_, rank_.rank);
  constexpr mode_t kMode = 0700;
  if (mkdir(place.c_str(), kMode) != 0)
    throw GroupError(fmt::format("rank {} is there twice", rank_.rank),
                     "each process needs a rank of its own; ranks of an earlier run may still be there");
  write_file(place + "/hello", hello);
}

/// What a rank says that says something else is told by all that see it.
void Meeting::wait_for_all(const std::string& hello) const {
  std::vector<int> missing;
  const auto all_there = [&] {
    missing.clear();
    for (int rank = 0; rank < rank_.size; ++rank) {
      const std::string path = fmt::format("{}/rank{}/hello", session_, rank);
      if (!fs::exists(path)) {
        missing.push_back(rank);
        continue;
      }
      if (const std::string other = read_file(path); other != hello)
        throw GroupError(fmt::format("rank {} is {}, rank {} is {}", rank_.rank, hello, rank, other),
                         "start all ranks of one network with the same program, and the same number of ranks");
    }
    return missing.empty();
  };
  if (within(timeout_ms_, all_there)) return;
  throw GroupError(
      fmt::format("rank{} {} of {} {} not come within {}", missing.size() == 1 ? "" : "s", fmt::join(missing, ", "),
                  rank_.size, missing.size() == 1 ? "has" : "have", seconds(timeout_ms_)),
      std::string(kCome));
}

std::string Meeting::folder(const std::string& name) const {
  std::string path = session_ + "/" + name;
  make_folder(path);
  return path;
}

}  // namespace hone
