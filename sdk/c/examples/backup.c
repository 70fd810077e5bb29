/* Copies a file in the gaps that others leave, when it fits in: cc backup.c $(pkg-config --cflags --libs minerva) */

#include <minerva.h>
#include <stdio.h>
#include <sys/stat.h>

/* Says what went wrong, and goes on: a backup without Minerva is better than none. */
static void check(const char *what, minerva_status status) {
    if (status != MINERVA_STATUS_OK)
        fprintf(stderr, "%s: %s\n", what, minerva_last_error());
}

static int copy(FILE *from, FILE *to) {
    static char buffer[1 << 16];
    size_t length;
    while ((length = fread(buffer, 1, sizeof buffer, from)) > 0)
        if (fwrite(buffer, 1, length, to) != length)
            return -1;
    return ferror(from) || fflush(to) ? -1 : 0;
}

int main(int count, char **words) {
    struct stat found;
    FILE *from = count == 3 ? fopen(words[1], "rb") : NULL;
    FILE *to = from != NULL ? fopen(words[2], "wb") : NULL;
    if (to == NULL || fstat(fileno(from), &found) != 0) {
        fprintf(stderr, "usage: backup FROM TO\n");
        return 2;
    }

    minerva_client *client = NULL;
    minerva_held *held = NULL;
    minerva_operation *operation = NULL;
    check("connect", minerva_connect(NULL, &client));
    check("step back", minerva_deprioritize(client, MINERVA_LEVEL_IDLE, &held));
    minerva_request request = {0};
    request.bytes = (uint64_t)found.st_size;
    request.done_within_ns = 20ull * 1000 * 1000 * 1000;
    check("coordinate", minerva_coordinate(client, &request, &operation));

    int failed = copy(from, to);

    if (failed)
        minerva_cancel(operation);
    else
        check("finish", minerva_finish(operation));
    minerva_release(held);
    minerva_account account = {0};
    check("credits", minerva_credits(client, &account));
    printf("%s; %.1f credits\n", failed ? "failed" : "copied", (double)account.held_micro_credits / 1e6);
    minerva_disconnect(client);
    fclose(from);
    return fclose(to) || failed ? 1 : 0;
}
