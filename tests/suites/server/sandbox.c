/* The sandbox, by trying what it forbids, with each part alone and without it. */
#include "server/sandbox/sandbox.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Results of an attempt beside 0 and errno values. MISSING: the part is not in force on this machine.
 * BROKEN: it should be. SIGNALLED: plus the number of the signal that ended the process. */
enum { MISSING = 200, BROKEN = 201, SIGNALLED = 300 };

/* A folder of each test; it holds the file "there". */
static char folder[] = "/tmp/kldiv-sandbox-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_folder(void)
{
    cr_assert(mkdtemp(folder));
    int fd = open(in_folder("there"), O_WRONLY | O_CREAT, 0644);
    cr_assert(fd >= 0);
    close(fd);
}

static void remove_folder(void)
{
    unlink(in_folder("there"));
    rmdir(folder);
}

static int errno_of(long result) { return result < 0 ? errno : 0; }

/* ---- What is tried. Each gives 0 or an errno. */

static int run_a_program(void)
{
    execl("/bin/true", "true", NULL);
    return errno;
}

static int make_a_process(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid > 0 ? errno_of(waitpid(pid, NULL, 0)) : errno;
}

static void *run_nothing(void *unused) { return unused; }

static int start_a_thread(void)
{
    pthread_t thread;
    int problem = pthread_create(&thread, NULL, run_nothing, NULL);
    return problem ? problem : pthread_join(thread, NULL);
}

static int be_traced(void) { return errno_of(ptrace(PTRACE_TRACEME, 0, NULL, NULL)); }
static int make_a_socket(void) { return errno_of(socket(AF_INET, SOCK_STREAM, 0)); }
static int connect_nothing(void) { return errno_of(connect(-1, NULL, 0)); }
static int bind_nothing(void) { return errno_of(bind(-1, NULL, 0)); }
static int write_a_file(void) { return errno_of(open(in_folder("there"), O_WRONLY)); }
static int empty_a_file(void) { return errno_of(open(in_folder("there"), O_RDONLY | O_TRUNC)); }
static int append_to_a_new_file(void)
{
    return errno_of(open(in_folder("new"), O_WRONLY | O_CREAT | O_APPEND, 0600));
}
static int empty_a_file_that_is_appended_to(void)
{
    return errno_of(open(in_folder("there"), O_WRONLY | O_CREAT | O_TRUNC, 0600));
}
static int make_a_file(void)
{
    int problem = errno_of(open(in_folder("new"), O_RDONLY | O_CREAT, 0600));
    return problem ? problem : errno_of(unlink(in_folder("new")));
}
static int read_a_file(void) { return errno_of(open(in_folder("there"), O_RDONLY)); }
static int remove_a_file(void)
{
    int problem = errno_of(unlink(in_folder("gone")));
    return problem == ENOENT ? 0 : problem;
}

static int map_code(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
               ? errno
               : 0;
}

static int make_data_code(void)
{
    void *data = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? errno : errno_of(mprotect(data, 4096, PROT_READ | PROT_EXEC));
}

static int type_into_a_terminal(void) { return errno_of(ioctl(-1, TIOCSTI, "x")); }
static int hide_from_debuggers(void) { return errno_of(prctl(PR_SET_DUMPABLE, 0L)); }
static int signal_another(void) { return errno_of(kill(getppid(), 0)); }
static int call_clone3(void) { return errno_of(syscall(SYS_clone3, NULL, 0)); }
static int call_the_future(void) { return errno_of(syscall(599)); }
static int change_root(void) { return errno_of(chroot("/")); }

/* An object that is there while the test runs. */
static char object[60];
static int write_an_object(void) { return errno_of(shm_open(object, O_RDWR, 0)); }
static int remove_an_object(void) { return errno_of(shm_unlink(object)); }
static int make_an_object(void)
{
    int problem = errno_of(shm_open(object, O_RDWR | O_CREAT | O_EXCL, 0600));
    return problem == EEXIST ? 0 : problem;
}

/* A program that root runs has all capabilities again, unless the bounding set lacks them. */
static int regain_capabilities(void)
{
    execl("/bin/sh", "sh", "-c", "! grep -q 'CapEff:.*[1-9a-f]' /proc/self/status", NULL);
    return errno;
}

/* ---- How it is tried */

/* Exits with MISSING or BROKEN unless what the options ask for is in force. */
static void demand(int result)
{
    if (result < 0 && result != -ECANCELED)
        _exit(result == -ENOSYS || result == -ENOTSUP ? MISSING : BROKEN);
}

/* Result of an attempt in a process of its own with these parts on. */
static int attempt(struct srv_options options, struct srv_sandbox_policy rights, int (*try)(void))
{
    int status;
    pid_t pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        struct srv_sandbox sandbox = srv_sandbox_enter(&options, &rights);
        demand(sandbox.no_new_privs);
        demand(sandbox.capabilities);
        demand(sandbox.seccomp);
        _exit(try());
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

static const struct srv_options none, privileges = {.drop_privileges = 1}, seccomp = {.seccomp = 1};

/* trial: `on` is the result with the part on, and `off` with it off; ANY depends on the machine. */
struct trial {
    const char *name;
    int (*try)(void);
    int on, off;
};
enum { ANY = -1 };

static void check(const struct trial *trials, size_t n, struct srv_options options,
                  struct srv_sandbox_policy rights)
{
    for (const struct trial *t = trials; t < trials + n; t++) {
        int on = attempt(options, rights, t->try), off = attempt(none, rights, t->try);
        if (on == MISSING)
            cr_skip("this kernel or this build lacks it");
        cr_expect_eq(on, t->on, "%s: %d", t->name, on);
        cr_expect(t->off == ANY || off == t->off, "%s, switched off: %d", t->name, off);
    }
}

#define TRIAL(function) #function, function

Test(sandbox, seccomp_refuses_what_serving_does_not_need)
{
    static const struct trial trials[] = {{TRIAL(run_a_program), SIGNALLED + SIGSYS, 0},
                                          {TRIAL(make_a_process), SIGNALLED + SIGSYS, 0},
                                          {TRIAL(be_traced), SIGNALLED + SIGSYS, ANY},
                                          {TRIAL(make_a_socket), EPERM, 0},
                                          {TRIAL(connect_nothing), EPERM, EBADF},
                                          {TRIAL(bind_nothing), EPERM, EBADF},
                                          {TRIAL(write_a_file), EPERM, 0},
                                          {TRIAL(empty_a_file), EPERM, 0},
                                          {TRIAL(make_a_file), EPERM, 0},
                                          {TRIAL(map_code), EPERM, 0},
                                          {TRIAL(make_data_code), EPERM, 0},
                                          {TRIAL(type_into_a_terminal), EPERM, EBADF},
                                          {TRIAL(hide_from_debuggers), EPERM, 0},
                                          {TRIAL(signal_another), EPERM, 0},
                                          {TRIAL(call_clone3), ENOSYS, ANY},
                                          {TRIAL(call_the_future), ENOSYS, ANY},
                                          {TRIAL(read_a_file), 0, 0},
                                          {TRIAL(start_a_thread), 0, 0}};
    make_folder();
    check(trials, COUNT(trials), seccomp, (struct srv_sandbox_policy){0});
    remove_folder();
}

Test(sandbox, seccomp_lets_files_be_written_for_a_store)
{
    static const struct trial trials[] = {{TRIAL(write_a_file), 0, 0},
                                          {TRIAL(make_a_file), 0, 0},
                                          {TRIAL(make_a_socket), EPERM, 0},
                                          {TRIAL(run_a_program), SIGNALLED + SIGSYS, 0}};
    make_folder();
    check(trials, COUNT(trials), seccomp, (struct srv_sandbox_policy){.has_store_file = true});
    remove_folder();
}

/* The rights of a server whose audit log is renamed while it runs. */
Test(sandbox, lets_a_log_be_made_again_and_appended_to)
{
    static const struct trial trials[] = {{TRIAL(append_to_a_new_file), 0, 0},
                                          {TRIAL(empty_a_file_that_is_appended_to), EPERM, 0},
                                          {TRIAL(write_a_file), EPERM, 0},
                                          {TRIAL(remove_a_file), EPERM, 0}};
    make_folder();
    close(open(in_folder("gone"), O_WRONLY | O_CREAT, 0600));
    check(trials, COUNT(trials), seccomp, (struct srv_sandbox_policy){.appends = true});
    unlink(in_folder("gone"));
    unlink(in_folder("new"));
    remove_folder();
}

/* The rights of a server that removes its unix socket at the end. */
Test(sandbox, leaves_removal_alone)
{
    static const struct trial with[] = {{TRIAL(remove_a_file), 0, 0},
                                        {TRIAL(make_a_file), EPERM, 0},
                                        {TRIAL(write_a_file), EPERM, 0}},
                              without[] = {{TRIAL(remove_a_file), EPERM, 0}};
    make_folder();
    check(with, COUNT(with), seccomp, (struct srv_sandbox_policy){.removes = true});
    check(without, COUNT(without), seccomp, (struct srv_sandbox_policy){0});
    remove_folder();
}

/* The rights of a server whose clients register shared memory. */
Test(sandbox, leaves_shared_memory_that_exists)
{
    static const struct trial with[] = {{TRIAL(write_an_object), 0, 0},
                                        {TRIAL(make_an_object), EPERM, 0},
                                        {TRIAL(remove_an_object), EACCES, ANY}},
                              without[] = {{TRIAL(write_an_object), EPERM, 0}};
    const struct srv_sandbox_policy rights = {.shared_memory = true};
    snprintf(object, sizeof object, "/kldiv_sandbox_%d", (int)getpid());
    const struct {
        const struct trial *trials;
        size_t n;
        struct srv_options options;
        struct srv_sandbox_policy rights;
    } cases[] = {{with, COUNT(with), seccomp, rights}, {without, COUNT(without), seccomp, {0}}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        close(shm_open(object, O_RDWR | O_CREAT, 0600));
        check(cases[i].trials, cases[i].n, cases[i].options, cases[i].rights);
        shm_unlink(object);
    }
}

/* Effective capabilities of the tests. */
static unsigned long long capabilities(void)
{
    size_t size;
    char *text = read_file("/proc/self/status", &size), *line = strstr(text, "CapEff:");
    unsigned long long set = line ? strtoull(line + strlen("CapEff:"), NULL, 16) : 0;
    free(text);
    return set;
}

static int new_privileges_are_refused(void) { return !prctl(PR_GET_NO_NEW_PRIVS, 0L, 0L, 0L, 0L); }

Test(sandbox, new_privileges_do_not_come)
{
    static const struct trial trial = {TRIAL(new_privileges_are_refused), 0, ANY};
    check(&trial, 1, privileges, (struct srv_sandbox_policy){0});
}

Test(sandbox, privileges_do_not_come_back_as_root)
{
    static const struct trial trials[] = {{TRIAL(change_root), EPERM, 0},
                                          {TRIAL(regain_capabilities), 0, 1}};
    if (!(capabilities() >> CAP_SYS_CHROOT & 1))
        cr_skip("these tests run without the capability to change the root");
    check(trials, COUNT(trials), privileges, (struct srv_sandbox_policy){0});
}
