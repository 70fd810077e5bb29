// The tenant's side of Minerva for C programs: step back, earn and spend credits, and ask when to begin.
//
// Made from sdk/c/src; do not edit. cc program.c $(pkg-config --cflags --libs minerva)
//
// Ownership. What a function hands out through a pointer to a pointer belongs to the caller, who ends it with the function
// that its comment names. Texts that are returned belong to the library. Texts that are passed are read during the call only.
//
// Threads. A client may be used by several threads at a time; a level that is held and an operation by one at a time,
// whichever it is. Errors are kept for each thread. After fork() a child must not use what its parent had: it connects
// for itself.
//
// Absence. Without a server every function succeeds and does nothing: an operation may begin at once, and no boost is bought.
// A level that is held and an operation last no longer than the process, however it ends.


#ifndef MINERVA_H
#define MINERVA_H

#include <stdbool.h>
#include <stdint.h>

// How a call ended. `minerva_last_error` has the sentence.
typedef enum minerva_status {
    // It was done, or there is no server and nothing to be done.
    MINERVA_STATUS_OK = 0,
    // An argument that cannot be meant: a null pointer, a text that is not UTF-8, an unknown number.
    MINERVA_STATUS_INVALID = 1,
    // The address cannot be read, or certificates or tokens do not fit: somebody has to mend it.
    MINERVA_STATUS_UNFIT = 2,
    // The server went away and did not come back in time, or did not answer. What was asked may have been done.
    MINERVA_STATUS_UNREACHABLE = 3,
    // The server said no, and nothing changed. `minerva_last_refusal` has its word.
    MINERVA_STATUS_REFUSED = 4,
    // A bug of this library.
    MINERVA_STATUS_BROKEN = 5,
    // A file could not be made or opened; the sentence says why.
    MINERVA_STATUS_FILE = 6,
} minerva_status;

// How far a tenant steps back.
typedef enum minerva_level {
    // As everyone.
    MINERVA_LEVEL_NORMAL = 1,
    // A part of what it would have.
    MINERVA_LEVEL_LOW = 2,
    // A small part of it.
    MINERVA_LEVEL_LOWEST = 3,
    // Only when nobody else uses the disk.
    MINERVA_LEVEL_IDLE = 4,
} minerva_level;

// Why an operation begins.
typedef enum minerva_begun_by {
    // The server said so.
    MINERVA_BEGUN_BY_TOLD = 0,
    // Its deadline has come, or as many slices have passed as it was told to wait.
    MINERVA_BEGUN_BY_IN_TIME = 1,
    // There is no server to say so.
    MINERVA_BEGUN_BY_UNSERVED = 2,
    // The server said: in the pool, in place of the disk. Only after `minerva_coordinate_or_pool`; `minerva_create_coordinated` makes
    // the file there.
    MINERVA_BEGUN_BY_IN_POOL = 3,
} minerva_begun_by;

// What an operation mostly does.
typedef enum minerva_access {
    // Reads of neighbouring blocks. 0 means the same.
    MINERVA_ACCESS_SEQUENTIAL_READ = 1,
    // Writes of neighbouring blocks.
    MINERVA_ACCESS_SEQUENTIAL_WRITE = 2,
    // Small reads all over.
    MINERVA_ACCESS_RANDOM_READ = 3,
    // Small writes all over.
    MINERVA_ACCESS_RANDOM_WRITE = 4,
} minerva_access;

// A pool.
typedef enum minerva_pool {
    // Memory; lost by a restart of the machine.
    MINERVA_POOL_TEMPORARY = 1,
    // A disk set aside.
    MINERVA_POOL_STABLE = 2,
} minerva_pool;

// A tenant's connection. Threads may share it. A child that the process forks may not: it connects for itself.
typedef struct minerva_client minerva_client;

// Work that is registered until it is ended, or the process ends in whatever way.
typedef struct minerva_debt minerva_debt;

// A level that is held until it is released, or the process ends in whatever way.
typedef struct minerva_held minerva_held;

// A batch job that lasts until it is ended, or the process ends in whatever way.
typedef struct minerva_job minerva_job;

// An operation that may begin.
typedef struct minerva_operation minerva_operation;

// What the account holds; all zeros without a server.
typedef struct minerva_account {
    // What can be spent, in millionths of a credit.
    uint64_t held_micro_credits;
    // Earned and not entered yet.
    uint64_t accruing_micro_credits;
    // What a boosted slice costs.
    uint64_t slice_price_micro_credits;
    // How long a slice is.
    uint64_t slice_ns;
} minerva_account;

// What was bought; all zeros without a server.
typedef struct minerva_purchase {
    // What it cost, in millionths of a credit.
    uint64_t price_micro_credits;
    // What is left.
    uint64_t held_micro_credits;
    // For how many slices.
    uint32_t slices;
} minerva_purchase;

// How much work there is, in time of a disk that nobody else uses. Begin with all zeros.
typedef struct minerva_owing {
    // All of it, what is done included; above 0. A first guess will do: how long it really takes is measured.
    uint64_t service_ns;
    // What is done of it.
    uint64_t done_ns;
    // Space that the rest ties until it is done.
    uint64_t tied_bytes;
} minerva_owing;

// An operation to be asked about. Begin with all zeros, as in `minerva_request request = {0};`.
typedef struct minerva_request {
    // How much it will move.
    uint64_t bytes;
    // It should be done within so long; 0: it is not bound so.
    uint64_t done_within_ns;
    // It must have begun within so long; 0: it is not bound so. One of the two at most. Without both it waits as long as the
    // operator lets an operation wait.
    uint64_t begin_within_ns;
    // On which disk, as `MAJ:MIN` of the host; null: the one below `path`, or where that has none the disk that the tenant uses most.
    const char *device;
    // A `minerva_access`.
    uint32_t access;
    // What it reads or writes, or something beside it; null: the working directory.
    const char *path;
} minerva_request;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes the file at `path`, empty, in place of what was there, and opens it for reading and writing. It is written at the pool's
// speed, is at its place at once as a symbolic link, and is moved there once it is closed everywhere and its disk is quiet. Where there is
// no pool, or it refuses, it is an ordinary file at its place. `pool` is a `minerva_pool`; `mode` holds its permissions, before the mask;
// `bytes` is how long it is expected to become, 0 where that is not known.
//
// # Safety
//
// `path` is a text that ends with a zero. `descriptor` may be written to; it is -1 if this fails. The caller closes it.
enum minerva_status minerva_create_deferred(const char *path,
                                            uint32_t pool_number,
                                            uint32_t mode,
                                            uint64_t bytes,
                                            int *descriptor);

// Opens a file of the tenant's own tree in a pool, by its path in the tree; `flags` and `mode` are those of `open`. Where there is no
// pool it is a file in a directory of the user's own below the directory of temporary files.
//
// # Safety
//
// As of `minerva_create_deferred`.
enum minerva_status minerva_open_cached(const char *path,
                                        uint32_t pool_number,
                                        int flags,
                                        uint32_t mode,
                                        int *descriptor);

// Connects to the server at `address`, such as `unix:/run/minerva/tenant.sock`. With a null pointer: where `MINERVA_ADDRESS`
// says, else where a server listens on this machine, else through an agent that is started.
//
// Without a server this succeeds too, and gives a client that does nothing (`minerva_absence`); standard error is told once.
// It fails when somebody has to mend something, such as an address that cannot be read. `*client` is null then.
//
// # Safety
//
// `address` is null or a text that ends with a zero. `client` may be written to. The caller ends what it gets with
// `minerva_disconnect`.
enum minerva_status minerva_connect(const char *address,
                                    struct minerva_client **client);

// Ends a connection. Levels that are held and operations that are under way keep what they need of it until they end too.
// A null pointer is nothing to do.
//
// # Safety
//
// `client` is null or came from `minerva_connect`, and nobody uses it any more.
void minerva_disconnect(struct minerva_client *client);

// Why nothing that is asked has an effect; null when there is a server. It belongs to the client. A server that comes later is
// found by a later call, and one behind `minerva-agent` may turn out to be absent only when something is asked.
//
// # Safety
//
// `client` is null or came from `minerva_connect`.
const char *minerva_absence(const struct minerva_client *client);

// Tells what the account holds.
//
// # Safety
//
// `client` came from `minerva_connect`. `account` may be written to.
enum minerva_status minerva_credits(const struct minerva_client *client, struct minerva_account *account);

// Buys high priority for `for_ns` nanoseconds, rounded up to whole slices, on one disk (`MAJ:MIN` of the host) or, with a null
// pointer, on all. Returns when the purchase is durable and the boost is in force. `*purchase`, unless null, tells what was
// bought. When the connection breaks it is asked for again under the same key, and bought once. After
// `MINERVA_STATUS_UNREACHABLE` it may have been bought: the sentence names the key, under which `minerva_boost_as` asks again.
//
// # Safety
//
// `client` came from `minerva_connect`. `device` is null or a text that ends with a zero. `purchase` is null or may be written
// to.
enum minerva_status minerva_boost(const struct minerva_client *client,
                                  uint64_t for_ns,
                                  const char *device,
                                  struct minerva_purchase *purchase);

// As `minerva_boost`, under a key of the caller's own that nobody else of the tenant uses: asked for twice under it, it is bought
// once, so that a program that does not know whether it was bought asks again.
//
// # Safety
//
// As for `minerva_boost`. `request_id` is a text that ends with a zero.
enum minerva_status minerva_boost_as(const struct minerva_client *client,
                                     const char *request_id,
                                     uint64_t for_ns,
                                     const char *device,
                                     struct minerva_purchase *purchase);

// Registers work that can wait until `minerva_debt_end`. `name` is of 1 to 64 letters, digits, `.`, `_` or `-`, and one of a name is
// registered at a time. It should be done within `done_within_ns`; 0: 30 days. `path` is what it will work on, or something beside
// it; null: the working directory.
//
// # Safety
//
// `client` came from `minerva_connect`. `name` is a text that ends with a zero, `path` too or null. `owing` can be read. `debt` may be
// written to; it is null if this fails. The caller ends what it gets with `minerva_debt_end`.
enum minerva_status minerva_debt_begin(const struct minerva_client *client,
                                       const char *name,
                                       const struct minerva_owing *owing,
                                       uint64_t done_within_ns,
                                       const char *path,
                                       struct minerva_debt **debt);

// Whether work may be done now; where it may not, it waits for `wait_ns` at most until it may. True where nobody is there to say so, and
// for a null pointer. A program that works asks again every few requests, with 0, and pauses when it may not.
//
// # Safety
//
// `debt` is null or came from `minerva_debt_begin`, and no other thread uses it meanwhile.
bool minerva_debt_may_work(struct minerva_debt *debt,
                           uint64_t wait_ns);

// Whether it is registered still: `Refused` where the server has it no more, such as when a later debt of the same name took its place
// (`key-reused`). Then nobody says any more when work may be done, and whose place was taken leaves it to the other. `Ok` also without a
// server, while it is away, and for a null pointer.
//
// # Safety
//
// `debt` is null or came from `minerva_debt_begin`.
enum minerva_status minerva_debt_status(const struct minerva_debt *debt);

// Says how far it is, and how much there is by now; told at most once a second, and in the background.
//
// # Safety
//
// `debt` is null or came from `minerva_debt_begin`. `owing` is null or can be read.
void minerva_debt_report(const struct minerva_debt *debt, const struct minerva_owing *owing);

// It is done, or will not be. A null pointer is nothing to do.
//
// # Safety
//
// `debt` is null or came from `minerva_debt_begin`, and nobody uses it any more. Any thread may end it.
void minerva_debt_end(struct minerva_debt *debt);

// Is a batch job of this name until `minerva_job_end`: of jobs on one disk the shortest goes first, and runs of one name are taken to
// be alike. `bytes` is what it will read and write in all; 0 where that is not known.
//
// # Safety
//
// `client` came from `minerva_connect`. `name` is a text that ends with a zero. `job` may be written to; it is null if this fails. The
// caller ends what it gets with `minerva_job_end`.
enum minerva_status minerva_job_begin(const struct minerva_client *client,
                                      const char *name,
                                      uint64_t bytes,
                                      struct minerva_job **job);

// The job's number in the order of the jobs on its disk, from 1; 0 while none goes before another, and for a null pointer. `*jobs`,
// unless null, is how many there are.
//
// # Safety
//
// `job` is null or came from `minerva_job_begin`. `jobs` is null or may be written to.
uint32_t minerva_job_place(const struct minerva_job *job,
                           uint32_t *jobs);

// The job is over. A null pointer is nothing to do.
//
// # Safety
//
// `job` is null or came from `minerva_job_begin`, and nobody uses it any more. Any thread may end it.
void minerva_job_end(struct minerva_job *job);

// Steps back until `minerva_release`. Returns when the level is in force; a server that is away meanwhile does not fail it, and
// the level is taken when it is back. `level` is a `minerva_level`.
//
// # Safety
//
// `client` came from `minerva_connect`. `held` may be written to; it is null if this fails. The caller ends what it gets with
// `minerva_release`.
enum minerva_status minerva_deprioritize(const struct minerva_client *client,
                                         uint32_t level,
                                         struct minerva_held **held);

// Comes back. A null pointer is nothing to do.
//
// # Safety
//
// `held` is null or came from `minerva_deprioritize`, and nobody uses it any more. Any thread may release it.
void minerva_release(struct minerva_held *held);

// Steps back for `for_ns` nanoseconds, or with 0 until another level is set; comes back with `MINERVA_LEVEL_NORMAL`. It outlasts
// the program. `*in_force`, unless null, is the level in force after it, which one that is held or scheduled may set
// further back.
//
// # Safety
//
// `client` came from `minerva_connect`. `in_force` is null or may be written to.
enum minerva_status minerva_set_level(const struct minerva_client *client,
                                      uint32_t level,
                                      uint64_t for_ns,
                                      enum minerva_level *in_force);

// Waits until the operation fits in with what others do. Whatever becomes of the server, it returns when the deadline has come.
// Then do it, and call `minerva_finish`.
//
// # Safety
//
// `client` came from `minerva_connect`. `request` can be read, and its `device` and `path` are null or texts that end with a zero.
// `operation` may be written to; it is null if this fails. The caller ends what it gets with `minerva_finish` or
// `minerva_cancel`.
enum minerva_status minerva_coordinate(const struct minerva_client *client,
                                       const struct minerva_request *request,
                                       struct minerva_operation **operation);

// The same for an operation that writes a file, and that may go to a pool of the cache in place of its disk where others use that;
// `pool` is a `minerva_pool`. Then `minerva_create_coordinated` makes the file, wherever it belongs.
//
// # Safety
//
// As of `minerva_coordinate`.
enum minerva_status minerva_coordinate_or_pool(const struct minerva_client *client,
                                               const struct minerva_request *request,
                                               uint32_t pool_number,
                                               struct minerva_operation **operation);

// Makes the file that an operation writes, empty, in place of what was there, and opens it for reading and writing: in the pool, with
// a link at `path`, if the operation begins there (`MINERVA_BEGUN_BY_IN_POOL`), and else at `path` itself. To be closed before
// `minerva_finish`.
//
// # Safety
//
// `operation` came from `minerva_coordinate_or_pool` or `minerva_coordinate`. `path` is a text that ends with a zero. `descriptor` may
// be written to; it is -1 if this fails. The caller closes it.
enum minerva_status minerva_create_coordinated(const struct minerva_operation *operation,
                                               const char *path,
                                               int *descriptor);

// Why it begins.
//
// # Safety
//
// `operation` is null or came from `minerva_coordinate`.
enum minerva_begun_by minerva_begun(const struct minerva_operation *operation);

// It is done; the measured time makes the next estimate better. `operation` is freed, also when this fails, which says only
// that the server could not be told. A null pointer is nothing to do.
//
// # Safety
//
// `operation` is null or came from `minerva_coordinate`, and nobody uses it any more. Any thread may finish it.
enum minerva_status minerva_finish(struct minerva_operation *operation);

// It will not be done, or not to its end. `operation` is freed. A null pointer is nothing to do.
//
// # Safety
//
// As for `minerva_finish`.
void minerva_cancel(struct minerva_operation *operation);

// The sentence of the calling thread's last call that failed; empty when none did. Never null. It belongs to the library and
// stays until the next call of this thread.
const char *minerva_last_error(void);

// The server's word for its refusal, such as `not-enough-credits`, if that was how the calling thread's last failed call
// ended; else empty. Never null. It belongs to the library and stays until the next call of this thread.
const char *minerva_last_refusal(void);

// Gives the requests of the calling thread a tag, 1 to 254, more is better, until `minerva_untag`; threads and processes that it starts
// meanwhile keep it. `stream`, 1 to 31, tells applications of a guest apart; 0: one that follows from the process and the tag. What is
// tagged once more is untagged as often. A kernel before 6.1.191 and 6.5 gets the nearest of eight levels.
enum minerva_status minerva_tag(uint8_t tag,
                                uint8_t stream);

// Takes back the last `minerva_tag` of the calling thread. Without one it is nothing to do.
void minerva_untag(void);

// The I/O priority that carries a tag, for one request: `io_uring_sqe.ioprio`, or `aio_reqprio` with `IOCB_FLAG_IOPRIO`, on a file that was
// opened with O_DIRECT. Parameters as of `minerva_tag`.
//
// # Safety
//
// `ioprio` may be written to.
enum minerva_status minerva_tag_ioprio(uint8_t tag,
                                       uint8_t stream,
                                       uint16_t *ioprio);

// How many tags this kernel passes to the host: 254, 8 on old kernels, or 0 where it takes no I/O priorities.
uint32_t minerva_tag_levels(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MINERVA_H */
