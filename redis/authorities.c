/* authorities.c - see authorities.h. */
#include "redis/authorities.h"

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

enum { HASH_DIGITS = 8 };

static const char *const bundles[] = {
    "/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Alpine, Arch */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* RHEL, Fedora, Amazon Linux */
    "/etc/pki/tls/certs/ca-bundle.crt",                  /* their releases before 7 */
    "/var/lib/ca-certificates/ca-bundle.pem",            /* SUSE */
    "/etc/ssl/cert.pem",                                 /* Alpine without its package */
};

static bool is_readable(const char *root, const char *path, char out[PATH_MAX])
{
    int n = snprintf(out, PATH_MAX, "%s%s", root, path);
    return n > 0 && n < PATH_MAX && access(out, R_OK) == 0;
}

/* "5ed36f99.0": OpenSSL finds a certificate in a directory by the hash of its name. */
static bool is_hashed(const char *name)
{
    return strspn(name, "0123456789abcdef") == HASH_DIGITS && name[HASH_DIGITS] == '.';
}

static bool has_hashed(const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return false;
    bool found = false;
    for (struct dirent *entry; !found && (entry = readdir(dir)) != NULL;)
        found = is_hashed(entry->d_name);
    closedir(dir);
    return found;
}

bool hf_authorities_find(const char *root, const char *file, const char *dir,
                         char out[PATH_MAX])
{
    if (is_readable(root, file, out) || (is_readable(root, dir, out) && has_hashed(out)))
        return false;
    for (size_t i = 0; i < HF_COUNT(bundles); i++)
        if (is_readable(root, bundles[i], out))
            return true;
    return false;
}
