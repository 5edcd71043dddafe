/* hf-parent.c - hf-parent COMMAND...: starts the command as its child, and dies in two
 * steps, as a program with several threads may. Its first thread, which has started the
 * child, ends at USR1; the other one at KILL. The word PARENT becomes its process id.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void *wait_for_kill(void *arg)
{
    (void)arg;
    while (pause() != 0)
        ;
    return NULL;
}

int main(int argc, char **argv)
{
    char pid[16];
    sigset_t usr1;
    pthread_t other;
    int number;
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    for (int i = 1; i < argc; i++)
        argv[i] = strcmp(argv[i], "PARENT") == 0 ? pid : argv[i];
    pid_t child = argc < 2 ? -1 : fork();
    if (child == 0) {
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    if (child < 0 || pthread_sigmask(SIG_BLOCK, &usr1, NULL) != 0 ||
        pthread_create(&other, NULL, wait_for_kill, NULL) != 0 ||
        sigwait(&usr1, &number) != 0)
        return 2;
    pthread_exit(NULL);
}
