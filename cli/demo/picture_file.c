/* picture_file.c - the file of the demo's picture. It is opened before anything starts,
 * so a file that cannot be written is reported at once, and is written at the end. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/demo/demo.h"
#include "cli/out.h"

static int cannot_write(const hf_cli *cli, const char *path, int error)
{
    return hf_cli_say(cli, HF_EXIT_DATA, "",
                      "--svg: expected a file that can be written, found \"%s\" (%s)",
                      path, strerror(error));
}

/* In a directory that everybody may write to: only a file that was not there is used. */
static int open_own(hf_demo_svg_file *file)
{
    (void)unlink(file->path); /* of a demo that had the same number */
    file->fd =
        open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    file->created = file->fd >= 0;
    return file->fd;
}

/* A pipe without a reader is refused; opening does not wait for one. */
static int open_named(hf_demo_svg_file *file)
{
    const int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    file->fd = open(file->path, flags | O_CREAT | O_EXCL, 0666);
    file->created = file->fd >= 0;
    if (file->fd < 0 && errno == EEXIST)
        file->fd = open(file->path, flags);
    if (file->fd >= 0)
        (void)fcntl(file->fd, F_SETFL, 0);
    return file->fd;
}

int hf_demo_svg_open(hf_demo_svg_file *file, const hf_cli *cli, const char *path)
{
    const char *dir = getenv("TMPDIR");
    int len;
    *file = (hf_demo_svg_file){.fd = -1};
    if (path != NULL)
        len = snprintf(file->path, sizeof file->path, "%s", path);
    else
        len = snprintf(file->path, sizeof file->path, "%s/holdfast-demo-%ld.svg",
                       dir != NULL && *dir != '\0' ? dir : "/tmp", (long)getpid());
    if (len < 0 || (size_t)len >= sizeof file->path)
        return hf_cli_say(cli, HF_EXIT_DATA, "",
                          "--svg: expected a path of less than %d bytes, found %d",
                          HF_DEMO_PATH_SIZE, len);
    if ((path != NULL ? open_named(file) : open_own(file)) < 0)
        return cannot_write(cli, file->path, errno);
    return HF_EXIT_OK;
}

/* The old content is removed only now. */
static bool write_all(int fd, const hf_buf *text)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || (S_ISREG(info.st_mode) && ftruncate(fd, 0) != 0))
        return false;
    for (size_t at = 0; at < text->len;) {
        ssize_t n = write(fd, text->data + at, text->len - at);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static void tell(const hf_demo_svg_file *file, const hf_demo *d)
{
    if (d->cli->json)
        hf_out_json(stdout, json_pack("{s:o, s:I}", "picture", hf_out_text(file->path),
                                      "runs", (json_int_t)hf_demo_count_runs(d)));
    else
        printf("  The picture of it is in %s\n", file->path);
}

int hf_demo_svg_write(hf_demo_svg_file *file, const hf_demo *d)
{
    hf_svg svg;
    hf_err err = hf_demo_draw_svg(d, &svg);
    bool written = err == HF_OK && write_all(file->fd, &svg.text);
    int error = errno;
    hf_svg_done(&svg);
    if (written) {
        written = close(file->fd) == 0;
        error = errno;
        file->fd = -1;
        file->created = file->created && !written;
    }
    if (!written)
        return hf_cli_say(d->cli, err != HF_OK ? HF_EXIT_SYSTEM : HF_EXIT_OUTPUT, "",
                          "%s: the picture cannot be written: %s", file->path,
                          err != HF_OK ? hf_err_text(err) : strerror(error));
    tell(file, d);
    return HF_EXIT_OK;
}

void hf_demo_svg_close(hf_demo_svg_file *file)
{
    if (file->fd >= 0)
        (void)close(file->fd);
    file->fd = -1;
    if (file->created)
        (void)unlink(file->path);
    file->created = false;
}
