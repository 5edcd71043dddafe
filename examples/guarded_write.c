/* guarded_write.c - a file and a row of SQLite that are written only while the lock's
 * fence still stands: guarded_write [URL [DIRECTORY]].
 *
 * A lease can end while its holder is stopped, swapped out or slow, and no check before
 * the write helps: the holder may be stopped between the two. So the store itself refuses
 * a fence that is lower than the highest it has seen. Here one writer is robbed of its
 * lock, a second one takes it and writes, and then the first one, who knows nothing of
 * that, writes as well. It ends with 0 when each store kept the second one's text. */
#define _POSIX_C_SOURCE 200809L /* also with -std=c11 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <holdfast/lock.h>
#include <sqlite3.h>

enum { PATH_SIZE = 1024 };

static void die(const char *what, const char *why)
{
    fprintf(stderr, "guarded_write: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

/* ---- a file: its first line is the fence that it was written under ---- */

/* Whoever writes holds flock() on a file beside it, which is never replaced: comparing
 * and writing are one step for all processes of this machine. A writer that dies leaves
 * the old text, one that comes late is refused. False: refused. */
static bool write_file(const char *path, uint64_t fence, const char *text)
{
    char guard[PATH_SIZE + 8], next[PATH_SIZE + 8];
    uint64_t seen = 0;
    snprintf(guard, sizeof guard, "%s.guard", path);
    snprintf(next, sizeof next, "%s.next", path);
    int fd = open(guard, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || flock(fd, LOCK_EX) != 0)
        die(guard, strerror(errno));
    FILE *old = fopen(path, "re");
    if (old != NULL) {
        if (fscanf(old, "%" SCNu64, &seen) != 1)
            die(path, "does not begin with a fence");
        fclose(old);
    } else if (errno != ENOENT) {
        die(path, strerror(errno)); /* it may have been written under a higher one */
    }
    if (fence >= seen) {
        FILE *file = fopen(next, "we");
        if (file == NULL || fprintf(file, "%" PRIu64 "\n%s\n", fence, text) < 0 ||
            fflush(file) != 0 || fsync(fileno(file)) != 0 || fclose(file) != 0 ||
            rename(next, path) != 0)
            die(next, strerror(errno));
    }
    close(fd); /* and with it the guard */
    return fence >= seen;
}

/* ---- a row: the fence is a column, and the comparison is in the statement ---- */

static bool write_row(sqlite3 *db, uint64_t fence, const char *text)
{
    static const char sql[] =
        "INSERT INTO report (name, fence, text) VALUES ('daily', ?1, ?2)"
        " ON CONFLICT (name) DO UPDATE SET fence = ?1, text = ?2 WHERE fence <= ?1";
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_bind_int64(statement, 1, (sqlite3_int64)fence) != SQLITE_OK ||
        sqlite3_bind_text(statement, 2, text, -1, SQLITE_TRANSIENT) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_DONE)
        die("report", sqlite3_errmsg(db));
    sqlite3_finalize(statement);
    return sqlite3_changes(db) == 1;
}

static sqlite3 *open_rows(const char *path)
{
    sqlite3 *db;
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_busy_timeout(db, 5000) != SQLITE_OK ||
        sqlite3_exec(db,
                     "CREATE TABLE IF NOT EXISTS report"
                     " (name TEXT PRIMARY KEY, fence INTEGER NOT NULL, text TEXT)",
                     NULL, NULL, NULL) != SQLITE_OK)
        die(path, sqlite3_errmsg(db));
    return db;
}

/* ---- two writers ---- */

static hf_lock *take(hf_lock_client *locks)
{
    char detail[HF_DETAIL_SIZE];
    const char *const name = "daily-report";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                               .wait_ms = 10000};
    hf_lock *lock;
    hf_err err = hf_lock_acquire_wait(locks, &opts, &lock, detail);
    if (err != HF_OK)
        die(hf_err_text(err), detail);
    return lock;
}

/* True: written to both stores. */
static bool write_both(const char *who, hf_lock_client *locks, uint64_t fence,
                       const char *path, sqlite3 *db)
{
    char detail[HF_DETAIL_SIZE];
    bool file = write_file(path, fence, who), row = write_row(db, fence, who);
    /* The same question for what cannot compare itself: a printer, a mail. Redis
       remembers the highest fence. It is a question only: what is done after it may
       still come late. */
    hf_err err = hf_fence_check(locks, "daily-report", fence, who, 3600000, NULL, detail);
    if (err != HF_OK && err != HF_LOST)
        die(hf_err_text(err), detail);
    printf("%s: the file %s, the row %s, fence check %s\n", who,
           file ? "was written" : "refused", row ? "was written" : "refused",
           err == HF_OK ? "passed" : "refused");
    return file && row && err == HF_OK;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : getenv("REDIS_URL");
    const char *dir = argc > 2 ? argv[2] : ".";
    char detail[HF_DETAIL_SIZE], file[PATH_SIZE], rows[PATH_SIZE];
    hf_lock_client *locks;
    size_t robbed;
    snprintf(file, sizeof file, "%s/report.txt", dir);
    snprintf(rows, sizeof rows, "%s/report.db", dir);
    const hf_lock_client_opts opts = {HF_LOCK_CLIENT_OPTS_INIT,
                                      .server = HF_SERVER(.url = url)};
    if (hf_lock_client_open(&locks, &opts, detail) != HF_OK)
        die("locks", detail);
    sqlite3 *db = open_rows(rows);

    hf_lock *first = take(locks);
    uint64_t fence = hf_lock_fence(first);
    bool ok = write_both("first", locks, fence, file, db);
    hf_err err = hf_lock_force(locks, "daily-report", NULL, &robbed, detail);
    if (err != HF_OK || robbed != 1)
        die("force", detail);
    hf_lock *second = take(locks);
    ok = write_both("second", locks, hf_lock_fence(second), file, db) && ok;

    /* The first one goes on as if nothing had happened, without looking. */
    ok = !write_both("first", locks, fence, file, db) && ok;
    /* It would have been told, too: by hf_lock_held(), a callback, and a descriptor. */
    hf_lock_release_result given_back = hf_lock_release_wait(first, NULL);
    printf("first: giving back answers %s\n", given_back == HF_RELEASE_NOT_OWNER
                                                  ? "that it is another's"
                                                  : "something else");
    ok = given_back == HF_RELEASE_NOT_OWNER && ok;
    ok = hf_lock_release_wait(second, NULL) == HF_RELEASE_DONE && ok;
    hf_lock_client_close(locks, NULL, NULL);
    sqlite3_close(db);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
