/* test_checker.c - the history checker fails for each rule that a history breaks, and for
 * nothing else. Each history here is made by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/history/guarded.h"
#include "tests/history/history.h"
#include "tests/support/eventually.h"
#include "tests/support/tempdir.h"

static char dir[HF_TEMPDIR_SIZE];
static hf_report report;

static int up(void **state)
{
    (void)state;
    hf_tempdir_make(dir);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_tempdir_remove(dir);
    return 0;
}

static const char *file(const char *name)
{
    static char path[HF_TEMPDIR_SIZE + 16];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

/* Lines are written with ' for ", in ms. */
static void write_lines(const char *name, const char *text)
{
    FILE *out = fopen(file(name), "we");
    assert_non_null(out);
    for (; *text != '\0'; text++)
        (void)fputc(*text == '\'' ? '"' : *text, out);
    assert_int_equal(fclose(out), 0);
}

static void check(const char *players, const char *server, const char *writes)
{
    hf_history *h = hf_history_new();
    if (players != NULL) {
        write_lines("p", players);
        hf_history_players(h, file("p"));
    }
    if (server != NULL) {
        write_lines("s", server);
        hf_history_server(h, file("s"));
    }
    if (writes != NULL) {
        write_lines("f", writes);
        hf_history_file(h, file("f"));
    }
    hf_history_check(h, &report);
    hf_history_free(h);
}

/* This rule was broken so often, and no other. */
static void broken(hf_rule rule, unsigned times)
{
    if (report.broken[rule] != times || hf_report_total(&report) != times) {
        hf_report_print(&report, stderr);
        fail_msg("%s: expected %u, found %u of %u", hf_rule_name(rule), times,
                 report.broken[rule], hf_report_total(&report));
    }
}

static void sound(void)
{
    broken(RULE_S1, 0);
}

/* An acquisition of player `p`: asked, answered, until; in ms, as ns have six digits
 * more. */
#define MS "000000"
#define ASK(p, id, t, name, mode, owner)                                                 \
    "{'t':" #t MS ",'player':" #p ",'id':" #id ",'ev':'acquire','names':'" name          \
    "','mode':'" mode "','permits':2,'limit':3,'lease':100,'owner':'" owner "'}\n"
#define GOT(p, id, t, fence, owner, until)                                               \
    "{'t':" #t MS ",'player':" #p ",'id':" #id                                           \
    ",'ev':'acquired','err':'HF_OK','fence':" #fence ",'owner':'" owner                  \
    "','until':" #until MS "}\n"
#define NOT_GOT(p, id, t, error)                                                         \
    "{'t':" #t MS ",'player':" #p ",'id':" #id ",'ev':'acquired','err':'" error "'}\n"
#define SAY(p, id, t, ev) "{'t':" #t MS ",'player':" #p ",'id':" #id ",'ev':'" ev "'}\n"
#define LOSE(p, id, t, why)                                                              \
    "{'t':" #t MS ",'player':" #p ",'id':" #id ",'ev':'lost','why':'" why "'}\n"
#define DONE(p, id, t, result)                                                           \
    "{'t':" #t MS ",'player':" #p ",'id':" #id ",'ev':'released','result':'" result "'}" \
    "\n"
#define HOLD(p, id, t, name, mode, fence, owner, until)                                  \
    ASK(p, id, t, name, mode, "") GOT(p, id, t, fence, owner, until)

static void beliefs_that_touch_are_sound(void **state)
{
    (void)state;
    check(HOLD(1, 1, 10, "n", "x", 5, "a", 110) SAY(1, 1, 50, "release")
              HOLD(2, 1, 50, "n", "x", 6, "b", 150) HOLD(3, 1, 60, "m", "x", 7, "c", 90)
                  HOLD(4, 1, 150, "n", "s", 8, "d", 250)
                      HOLD(5, 1, 160, "n", "s", 9, "e", 250),
          NULL, NULL);
    sound();
    assert_int_equal(report.acquired, 5);
}

static void s1_two_believe(void **state)
{
    (void)state;
    check(HOLD(1, 1, 10, "n", "x", 5, "a", 110) HOLD(2, 1, 109, "n", "x", 6, "b", 150),
          NULL, NULL);
    broken(RULE_S1, 1);
    check(HOLD(1, 1, 10, "n", "s", 5, "a", 110) HOLD(2, 1, 20, "n,m", "x", 6, "b", 150),
          NULL, NULL);
    broken(RULE_S1, 1);
    check(HOLD(1, 1, 10, "n", "p", 5, "a", 110) HOLD(2, 1, 20, "n", "p", 6, "b", 150),
          NULL, NULL);
    broken(RULE_S1, 1); /* 4 of 3 */
}

static void s1_a_belief_ends_with_what_is_first(void **state)
{
    (void)state;
    check(HOLD(1, 1, 10, "n", "x", 5, "a",
               110) "{'t':15000000,'player':1,'id':1,'ev':'until','until':130000000}"
                    "\n" HOLD(2, 1, 120, "n", "x", 6, "b", 150),
          NULL, NULL);
    broken(RULE_S1, 1);
    check(HOLD(1, 1, 10, "n", "x", 5, "a",
               110) "{'t':50000000,'ev':'killed','player':1}\n" HOLD(2, 1, 60, "n", "x",
                                                                     6, "b", 150),
          NULL, NULL);
    sound();
    check(HOLD(1, 1, 10, "n", "x", 5, "a", 110) SAY(1, 1, 40, "downgrade")
              HOLD(2, 1, 60, "n", "s", 6, "b", 150),
          NULL, NULL);
    sound();
    check(HOLD(1, 1, 10, "n", "x", 5, "a", 110) SAY(1, 1, 40, "downgrade")
              HOLD(2, 1, 60, "n", "x", 6, "b", 150),
          NULL, NULL);
    broken(RULE_S1, 1);
}

#define TOOK(from, to) "{'ev':'took','name':'n','from':" #from MS ",'to':" #to MS "}\n"

static void s1_what_was_taken_overlaps_for_one_lease_at_most(void **state)
{
    (void)state;
    check(HOLD(1, 1, 10, "n", "x", 5, "a", 110) TOOK(20, 21)
              HOLD(2, 1, 30, "n", "x", 6, "b", 150),
          NULL, NULL);
    sound();
    assert_int_equal(report.excused, 1);
    assert_int_equal(report.excused_longest_ns, 80000000);
    check(ASK(1, 1, 10, "n", "x", "") TOOK(20, 21) HOLD(2, 1, 30, "n", "x", 6, "b", 150)
              GOT(1, 1, 40, 5, "a", 110),
          NULL, NULL);
    sound(); /* and the older one was told late that it was granted */
    assert_int_equal(report.excused, 1);
    check(HOLD(1, 1, 10, "n", "x", 5, "a", 130) TOOK(20, 21)
              HOLD(2, 1, 30, "n", "x", 6, "b", 150),
          NULL, NULL);
    broken(RULE_S1, 1); /* it was renewed after it was gone */
    check(TOOK(5, 6) HOLD(1, 1, 10, "n", "x", 5, "a", 110)
              HOLD(2, 1, 30, "n", "x", 6, "b", 150),
          NULL, NULL);
    broken(RULE_S1, 1); /* it was taken before */
}

static void s3_fences(void **state)
{
    (void)state;
    check(HOLD(1, 1, 10, "n", "x", 5, "a", 20) HOLD(2, 1, 30, "n", "x", 4, "b", 40), NULL,
          NULL);
    broken(RULE_S3, 1);
    check(HOLD(1, 1, 10, "n", "s", 5, "a", 40) ASK(2, 1, 9, "n", "s", "")
              GOT(2, 1, 20, 5, "b", 40),
          NULL, NULL);
    broken(RULE_S3, 1); /* one fence, two owners */
    check(HOLD(1, 1, 10, "n", "x", 5, "a", 90) HOLD(1, 2, 20, "n", "x", 5, "a", 90), NULL,
          NULL);
    sound(); /* the same one again */
}

static void s4_no_other_client_takes_it(void **state)
{
    (void)state;
    check(HOLD(1, 1, 10, "n", "x", 5, "a", 110) LOSE(1, 1, 50, "REFUSED"), NULL, NULL);
    broken(RULE_S4, 1);
    check(HOLD(1, 1, 10, "n", "x", 5, "a", 110) LOSE(1, 1, 50, "REFUSED") TOOK(20, 21),
          NULL, NULL);
    sound();
    check(HOLD(1, 1, 10, "n", "x", 5, "a", 110) SAY(1, 1, 50, "release")
              DONE(1, 1, 60, "NOT_OWNER"),
          NULL, NULL);
    broken(RULE_S4, 1);
    check(HOLD(1, 1, 10, "n", "x", 5, "a", 110) SAY(1, 1, 50, "release")
              DONE(1, 1, 120, "EXPIRED"),
          NULL, NULL);
    sound(); /* late, on the way */
    check(HOLD(1, 1, 10, "n", "x", 5, "a", 110) LOSE(1, 1, 120, "REFUSED")
              SAY(1, 1, 130, "release") DONE(1, 1, 140, "RELEASED"),
          NULL, NULL);
    broken(RULE_S4, 1);
}

static void s12_an_upgrade_is_refused(void **state)
{
    (void)state;
    check(ASK(1, 1, 10, "n", "s", "a") GOT(1, 1, 10, 5, "a", 110)
              ASK(1, 2, 20, "n", "x", "a") NOT_GOT(1, 2, 30, "HF_DEADLOCK"),
          NULL, NULL);
    sound();
    check(ASK(1, 1, 10, "n", "s", "a") GOT(1, 1, 10, 5, "a", 110)
              ASK(1, 2, 20, "n", "x", "a") NOT_GOT(1, 2, 30, "HF_TAKEN"),
          NULL, NULL);
    broken(RULE_S12, 1);
    check(ASK(1, 1, 10, "n", "s", "a") GOT(1, 1, 10, 5, "a", 110) TOOK(15, 16)
              ASK(1, 2, 20, "n", "x", "a") GOT(1, 2, 30, 6, "a", 110),
          NULL, NULL);
    sound(); /* it does not share it any more */
}

/* A fence is the time of its grant in us. Heard at `wall`, in us; answered at t, in ms.
 */
#define HEARD(p, id, t, fence, wall)                                                     \
    "{'t':" #t MS ",'player':" #p ",'id':" #id                                           \
    ",'ev':'acquired','err':'HF_OK','fence':" #fence ",'owner':'a','until':" #t "9" MS   \
    ",'wall':" #wall "}\n"
#define DISTURBED(p, from, to)                                                           \
    "{'ev':'disturbed','player':" #p ",'from':" #from MS ",'to':" #to MS "}\n"

static void o3_a_grant_is_heard_late(void **state)
{
    (void)state;
    check(ASK(1, 1, 100, "n", "x", "") HEARD(1, 1, 1000, 5000000, 5500000), NULL, NULL);
    sound();
    check(ASK(1, 1, 100, "n", "x", "") HEARD(1, 1, 1000, 5000000, 5501000), NULL, NULL);
    broken(RULE_O3, 1);
    check(ASK(1, 1, 900, "n", "x", "") HEARD(1, 1, 1000, 5000000, 5900000), NULL, NULL);
    sound(); /* it was granted to its owner before */
    check(ASK(1, 1, 100, "n", "x", "") HEARD(1, 1, 1000, 5000000, 5600000)
              DISTURBED(1, 300, 400),
          NULL, NULL);
    sound();
    check(ASK(1, 1, 100, "n", "x", "") HEARD(1, 1, 1000, 5000000, 5600000)
              DISTURBED(2, 300, 1700) DISTURBED(0, 300, 399),
          NULL, NULL);
    broken(RULE_O3, 1);
}

#define LATE(timer, from, to)                                                            \
    "{'ev':'late','timer':" #timer ",'from':" #from MS ",'to':" #to MS "}\n"

/* It was granted at 300 and heard at 1000. */
static void o3_a_grant_may_be_as_late_as_one_timer(void **state)
{
    static const struct {
        const char *late;
        bool sound;
    } cases[] = {
        {LATE(4, 300, 500), true},
        {LATE(4, 300, 499), false},
        {LATE(4, 300, 400) LATE(4, 600, 700), true},   /* one timer, twice */
        {LATE(4, 300, 400) LATE(5, 600, 700), false},  /* two timers */
        {LATE(4, 100, 499) LATE(4, 1000, 9000), false} /* before and after it */
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char text[2048];
        (void)snprintf(text, sizeof text, "%s%s",
                       ASK(1, 1, 100, "n", "x", "") HEARD(1, 1, 1000, 5000000, 5700000),
                       cases[i].late);
        check(text, NULL, NULL);
        if (cases[i].sound)
            sound();
        else
            broken(RULE_O3, 1);
    }
}

/* ---- what the server did ---- */

#define SCRIPT(what, owner, hold)                                                        \
    "{'ev':'script','what':'" what "','owner':'" owner "','hold':'" hold "','limit':3}"  \
    "\n"
/* Leases of no length: they end when they begin. */
#define LEASE(name, owner, until)                                                        \
    "{'ev':'lease','name':'" name "','owner':'" owner "','start':" #until "}\n"
#define QUEUED(name, owner, place)                                                       \
    "{'ev':'queued','name':'" name "','owner':'" owner "','place':" #place "000}\n"
#define ENTRY(name, owner, mode, granted, fence)                                         \
    "{'ev':'entry','name':'" name "','owner':'" owner "','mode':'" mode                  \
    "','granted':" #granted ",'permits':1,'fence':" #fence                               \
    "000,'client':'c','holds':'h" owner "=x','lease':0}\n"
#define GONE(name, owner, at)                                                            \
    "{'ev':'gone','name':'" name "','owner':'" owner "','at':" #at "}\n"
#define TOLD(fence)                                                                      \
    "{'ev':'told','tag':'n','client':'c','what':'granted','fence':" #fence "000}\n"
#define ENTER(name, owner, mode, fence, until)                                           \
    SCRIPT("acquire", owner, "h" owner)                                                  \
    LEASE(name, owner, until) ENTRY(name, owner, mode, 1, fence)
#define WAIT(name, owner, mode, place, until)                                            \
    SCRIPT("acquire", owner, "h" owner)                                                  \
    LEASE(name, owner, until) QUEUED(name, owner, place) ENTRY(name, owner, mode, 0, 0)
#define LEAVE(name, owner, at) SCRIPT("release", owner, "h" owner) GONE(name, owner, at)

static void a_line_in_order_is_sound(void **state)
{
    (void)state;
    check(NULL,
          ENTER("n", "a", "x", 100, 900) WAIT("n", "b", "s", 110, 900)
              WAIT("n", "c", "s", 120, 115) WAIT("n", "d", "s", 130, 900)
                  LEAVE("n", "a", 200) GONE("n", "c", 200) ENTRY("n", "b", "s", 1, 200)
                      TOLD(200) ENTRY("n", "d", "s", 1, 201) TOLD(201),
          NULL);
    sound();
    assert_int_equal(report.grants, 3);
    assert_int_equal(report.waited, 2);
}

static void s2_two_are_granted(void **state)
{
    (void)state;
    check(NULL, ENTER("n", "a", "x", 100, 900) ENTER("n", "b", "s", 101, 900), NULL);
    broken(RULE_S2, 1);
    check(NULL,
          ENTER("n", "a", "p", 100, 900) ENTER("n", "b", "p", 101, 900)
              ENTER("n", "c", "p", 102, 900) ENTER("n", "d", "p", 103, 900),
          NULL);
    broken(RULE_S2, 1);
}

static void s3_a_fence_is_granted_late(void **state)
{
    (void)state;
    check(NULL,
          ENTER("n", "a", "x", 100, 900) LEAVE("n", "a", 101)
              ENTER("n", "b", "x", 100, 900),
          NULL);
    broken(RULE_S3, 1);
    check(ASK(1, 1, 10, "n", "x", "") GOT(1, 1, 11, 7000, "a", 40),
          ENTER("n", "a", "x", 100, 900), NULL);
    broken(RULE_S3, 1); /* the player was told another one */
}

static void s4_another_client_leaves(void **state)
{
    (void)state;
    check(NULL,
          ENTER("n", "a", "x", 100, 900) SCRIPT("release", "b", "hb") GONE("n", "a", 200),
          NULL);
    broken(RULE_S4, 1);
    check(NULL,
          ENTER("n", "a", "x", 100, 900) SCRIPT("release", "a", "before")
              GONE("n", "a", 200),
          NULL);
    broken(RULE_S4, 1); /* of another life */
    check(NULL,
          ENTER("n", "a", "x", 100, 190) SCRIPT("renew", "", "") GONE("n", "a", 200),
          NULL);
    sound(); /* it was over */
}

static void s7_renewals(void **state)
{
    (void)state;
    check(NULL, SCRIPT("renew", "", "") LEASE("n", "a", 900), NULL);
    broken(RULE_S7, 1);
    check(NULL,
          ENTER("n", "a", "x", 100, 900) SCRIPT("renew", "", "") LEASE("n", "a", 800),
          NULL);
    broken(RULE_S7, 1);
}

#define GUARD(fence, owner)                                                              \
    "{'ev':'guard','resource':'r','fence':" #fence ",'owner':'" owner "'}\n"

static void s11_a_lower_fence_is_taken(void **state)
{
    (void)state;
    check(NULL, GUARD(5, "a") GUARD(5, "a") GUARD(6, "b"), NULL);
    sound();
    check(NULL, GUARD(5, "a") GUARD(4, "b"), NULL);
    broken(RULE_S11, 1);
    check(NULL, GUARD(5, "a") GUARD(5, "b"), NULL);
    broken(RULE_S11, 1);
}

#define WRITTEN(ev, value, fence, owner)                                                 \
    "{'ev':'" ev "','value':" #value ",'fence':" #fence ",'owner':'" owner "'}\n"

static void s11_of_a_file(void **state)
{
    (void)state;
    check(NULL, NULL,
          WRITTEN("seen", 0, 5, "a") WRITTEN("write", 1, 5, "a")
              WRITTEN("seen", 1, 6, "b") WRITTEN("write", 2, 6, "b"));
    sound();
    assert_int_equal(report.writes, 2);
    check(NULL, NULL, WRITTEN("write", 1, 5, "a") WRITTEN("write", 2, 4, "b"));
    broken(RULE_S11, 1);
    check(NULL, NULL, WRITTEN("write", 1, 5, "a") WRITTEN("write", 2, 5, "b"));
    broken(RULE_S11, 1);
    check(NULL, NULL, WRITTEN("write", 1, 5, "a") WRITTEN("write", 1, 6, "b"));
    broken(RULE_S1, 1); /* lost */
}

static void s12_shared_past_exclusive(void **state)
{
    (void)state;
    check(NULL,
          ENTER("n", "a", "s", 100, 900) WAIT("n", "b", "x", 110, 900)
              ENTER("n", "c", "s", 120, 900),
          NULL);
    broken(RULE_S12, 1);
    check(NULL,
          ENTER("n", "a", "s", 100, 900) SCRIPT("acquire", "a", "ha")
              QUEUED("n", "a", 110),
          NULL);
    broken(RULE_S12, 1);
}

static void o1_grants_pass_an_earlier_waiter(void **state)
{
    (void)state;
    check(NULL,
          ENTER("n", "a", "x", 100, 900) WAIT("n", "b", "x", 110, 900)
              WAIT("n", "c", "x", 120, 900) LEAVE("n", "a", 200)
                  ENTRY("n", "c", "x", 1, 200) TOLD(200),
          NULL);
    broken(RULE_O1, 1);
    check(NULL,
          ENTER("n", "a", "x", 100, 900) WAIT("n", "b", "x", 110, 150)
              LEAVE("n", "a", 200) ENTRY("n", "b", "x", 1, 200) TOLD(200),
          NULL);
    broken(RULE_O1, 1); /* whose lease was over */
}

static void o2_a_grant_is_told_exactly_once(void **state)
{
    (void)state;
    check(NULL,
          ENTER("n", "a", "x", 100, 900) WAIT("n", "b", "x", 110, 900)
              LEAVE("n", "a", 200) ENTRY("n", "b", "x", 1, 200),
          NULL);
    broken(RULE_O2, 1);
    check(NULL,
          ENTER("n", "a", "x", 100, 900) WAIT("n", "b", "x", 110, 900)
              LEAVE("n", "a", 200) ENTRY("n", "b", "x", 1, 200) TOLD(200) TOLD(200),
          NULL);
    broken(RULE_O2, 1);
    check(NULL, ENTER("n", "a", "x", 100, 900) TOLD(100), NULL);
    broken(RULE_O2, 1);
}

/* ---- the file ---- */

static void a_file_takes_no_lower_fence(void **state)
{
    (void)state;
    hf_history *h = hf_history_new();
    (void)unlink(file("g"));
    assert_true(hf_guarded_write(file("g"), 5, "a", 0));
    assert_true(hf_guarded_write(file("g"), 5, "a", 0));
    assert_true(hf_guarded_write(file("g"), 7, "b", 0));
    assert_false(hf_guarded_write(file("g"), 6, "a", 0));
    assert_false(hf_guarded_write(file("g"), 7, "a", 0));
    hf_history_file(h, file("g"));
    hf_history_check(h, &report);
    hf_history_free(h);
    sound();
    assert_int_equal(report.writes, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beliefs_that_touch_are_sound),
        cmocka_unit_test(s1_two_believe),
        cmocka_unit_test(s1_a_belief_ends_with_what_is_first),
        cmocka_unit_test(s1_what_was_taken_overlaps_for_one_lease_at_most),
        cmocka_unit_test(s3_fences),
        cmocka_unit_test(s4_no_other_client_takes_it),
        cmocka_unit_test(s12_an_upgrade_is_refused),
        cmocka_unit_test(o3_a_grant_is_heard_late),
        cmocka_unit_test(o3_a_grant_may_be_as_late_as_one_timer),
        cmocka_unit_test(a_line_in_order_is_sound),
        cmocka_unit_test(s2_two_are_granted),
        cmocka_unit_test(s3_a_fence_is_granted_late),
        cmocka_unit_test(s4_another_client_leaves),
        cmocka_unit_test(s7_renewals),
        cmocka_unit_test(s11_a_lower_fence_is_taken),
        cmocka_unit_test(s11_of_a_file),
        cmocka_unit_test(s12_shared_past_exclusive),
        cmocka_unit_test(o1_grants_pass_an_earlier_waiter),
        cmocka_unit_test(o2_a_grant_is_told_exactly_once),
        cmocka_unit_test(a_file_takes_no_lower_fence),
    };
    return cmocka_run_group_tests(tests, up, down);
}
