"""Runs the tests of Django's tasks and of two backends of django-tasks on the backend holdfast_queue.django.

    django_suite.py FOLDER                 FOLDER has what the three source packages contain; prints one line of JSON
    django_suite.py FOLDER holdfast ...    the project's command line, for the worker

97-django-tasks starts it, in an environment that has Django. Copies of the tests are changed where they name their own
backend: Suite takes its place. Where they run their own worker, the one of Holdfast runs until nothing waits."""
import contextlib
import json
import logging
import os
import re
import subprocess
import sys
import time
import types
import unittest
from unittest import mock

FOLDER, WORDS = os.path.abspath(sys.argv[1]), sys.argv[2:]
LOG = os.path.join(FOLDER, "log")
QUEUES = ("default", "queue-1")
SUITE = "django_suite.Suite"
DUMMY = "they look into the list that the dummy backend is"
WAITS = "the backend of Holdfast waits for the commit unless told otherwise"
TABLE = "about the database table that the other backend is"
RQ = "about queues and jobs of RQ"
DB_WORKER = "about options of that backend's own worker command"
LEFT_OUT = {
    "test_dummy_backend": {
        "test_refresh_result": DUMMY, "test_refresh_result_async": DUMMY,
        "test_doesnt_wait_until_transaction_commit_by_default": WAITS,
    },
    "test_tasks": {"test_refresh_result": DUMMY},
    "rq": {
        "test_complex_return_value": "the text that RQ stores for a value that it cannot pickle",
        "test_invalid_task_path": RQ, "test_exception_classes_pop_empty_list_bug": RQ,
        "test_uses_rq_queues_for_queue_names": RQ, "test_unknown_queue_name": RQ,
        "test_compat_has_django_task": "about its module `compat`",
    },
    "db": {
        "test_enqueue_task": "ids are UUIDs there", "test_enqueue_task_async": "ids are UUIDs there",
        "test_custom_id_function": "an option of that backend", "test_unknown_id_function": "an option of that backend",
        "test_postgres_db_id_function": "an option of that backend",
        "test_postgres_id_function_expression": "an option of that backend",
        "test_doesnt_wait_until_transaction_commit": WAITS,
        "test_complex_return_value": "the text of another JSON writer; Django's is `Unsupported type`",
        **dict.fromkeys(("test_refresh_result", "test_refresh_result_async", "test_invalid_task_path", "test_task_name",
                         "test_missing_task_path", "test_priority_range_check", "test_index_scan_for_ready",
                         "test_run_after_tz", "test_run_after_null_0016_migration", "test_run_after",
                         "test_run_after_priority", "test_worker_with_locked_rows", "test_task_import_string",
                         "test_batch_processes_all_tasks"), TABLE),
        **dict.fromkeys(("test_process_all_queues_excluding_one_queue", "test_verbose_logging", "test_max_tasks",
                         "test_exclude_queues_requires_processing_all_queues", "test_unknown_backend",
                         "test_excluding_unknown_queue_processes_selected_queues", "test_incorrect_backend",
                         "test_negative_interval", "test_infinite_interval", "test_fractional_interval",
                         "test_zero_interval", "test_negative_max_tasks", "test_zero_max_tasks",
                         "test_too_long_worker_id", "test_empty_worker_id", "test_doesnt_process_different_backend"),
                        DB_WORKER),
    },
}
CLASSES_LEFT_OUT = {
    "DatabaseTaskResultTestCase": TABLE, "ConnectionExclusiveTranscationTestCase": TABLE,
    "DatabaseBackendPruneTaskResultsTestCase": TABLE, "DBTaskResultOrderingTestCase": TABLE, "AdminTestCase": TABLE,
    "DatabaseWorkerProcessTestCase": DB_WORKER, "CompatTestCase": "about its module `compat`",
}
FILES_LEFT_OUT = {
    "test_immediate_backend": "enqueue() runs the task there", "test_custom_backend": "about backends that it defines",
}


def read(path):
    with open(os.path.join(FOLDER, path)) as file:
        return file.read()


def write(path, text):
    os.makedirs(os.path.dirname(os.path.join(FOLDER, path)), exist_ok=True)
    with open(os.path.join(FOLDER, path), "w") as file:
        file.write(text)


def source(name, path):
    """The one file of a source package, whatever its version."""
    found = [folder for folder in os.listdir(FOLDER) if re.fullmatch(name + r"-[\d.]+", folder)]
    return read(os.path.join(found[0], path))


def copy_tests():
    for name in ("test_dummy_backend", "test_tasks", *FILES_LEFT_OUT, "tasks", "__init__"):
        text = source("django", f"tests/tasks/{name}.py")
        text = text.replace("from django.tasks.backends.dummy import DummyBackend",
                            "from django_suite import Suite as DummyBackend")
        write(f"copy/tasks/{name}.py", text.replace("django.tasks.backends.dummy.DummyBackend", SUITE))
    write("copy/tests/__init__.py", "")
    text = source("django", "tests/tasks/tasks.py").replace("This Task failed", "This task failed")
    write("copy/tests/tasks.py", text)
    text = source("django_tasks_rq", "tests/tests.py")
    for old, new in (("from django_tasks ", "from django.tasks "), ("from django_tasks.", "from django.tasks."),
                     ("InvalidTaskError", "InvalidTask"), ('assertLogs("django_tasks"', 'assertLogs("django.tasks"'),
                     ("django_tasks_rq.RQBackend", SUITE),
                     ('assertIn("django_rq"', 'assertIn("holdfast_queue.django"')):
        text = text.replace(old, new)
    write("copy/rq_tests.py", text)
    text = source("django_tasks_db", "tests/tests.py")
    for old, new in (("django_tasks_db.DatabaseBackend", SUITE),
                     ('assertIn("django_tasks_db"', 'assertIn("holdfast_queue.django"')):
        text = text.replace(old, new)
    write("copy/db_tests.py", text)


def configure(is_worker):
    from django.conf import settings
    tasks = {"BACKEND": SUITE, "QUEUES": list(QUEUES)}
    handlers = {}
    if is_worker:
        tasks["OPTIONS"] = {"modules": ["tests.tasks", "tasks.tasks"]}
        handlers["file"] = {"class": "django_suite.ToFile"}
    settings.configure(
        SECRET_KEY="x", USE_TZ=True, INSTALLED_APPS=["holdfast_queue.django"], TASKS={"default": tasks},
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        LOGGING={"version": 1, "handlers": handlers, "loggers": {"django.tasks": {
            "level": "DEBUG", "handlers": list(handlers)}}})
    import django
    django.setup()


class ToFile(logging.Handler):
    """The worker's records, one JSON object a line, for the process of the tests."""

    def emit(self, record):
        with open(LOG, "a") as file:
            file.write(json.dumps({"name": record.name, "level": record.levelno, "text": record.getMessage()}) + "\n")


# ---- the queue ------------------------------------------------------------------------


def connect():
    import redis
    return redis.Redis.from_url(os.environ["REDIS_URL"])


def waiting(queue):
    r = connect()
    return [id.decode() for level in ("schedule:h", "schedule", "schedule:l")
            for id in r.zrange(f"hf:{{{queue}}}:{level}", 0, -1)]


def command(*words):
    subprocess.run([os.environ["HOLDFAST_BIN"], *words], check=True, stdout=subprocess.DEVNULL)


def run_worker(queue_name="default", backend_name="default", tell=True, **_):
    """Lets the worker have the queues until nothing waits and nothing runs in them."""
    queues = QUEUES if queue_name == "*" else queue_name.split(",")
    r, until = connect(), time.monotonic() + 60
    at = os.path.getsize(LOG)
    for queue in queues:
        command("queue", "resume", queue)
    while any(waiting(queue) or r.zcard(f"hf:{{{queue}}}:running") for queue in queues):
        assert time.monotonic() < until, "the worker does not finish"
        time.sleep(0.005)
    for queue in queues:
        command("queue", "pause", queue)
    with open(LOG) as file:
        file.seek(at)
        for line in file if tell else ():
            said = json.loads(line)
            logging.getLogger(said["name"]).log(said["level"], "%s", said["text"])


class Ready:
    """What the tests of the database backend count."""

    @staticmethod
    def count():
        return sum(len(waiting(queue)) for queue in QUEUES)


# ---- the tests ------------------------------------------------------------------------


def stand_ins():
    """Modules of the other backends, which are not there. What the tests that run use of them is real."""
    for name in ("django_rq", "django_rq.connection_utils", "django_rq.queues", "fakeredis", "rq", "rq.defaults",
                 "rq.timeouts", "django_tasks_rq", "django_tasks_db", "django_tasks_db.admin", "django_tasks_db.models",
                 "django_tasks_db.management", "django_tasks_db.management.commands",
                 "django_tasks_db.management.commands.prune_db_task_results", "django_tasks_db.utils"):
        sys.modules[name] = mock.MagicMock(__path__=[])
    sys.modules["django_rq"].get_queue = lambda name, **_: types.SimpleNamespace(job_ids=waiting(name))
    sys.modules["django_tasks_rq.backend"] = types.SimpleNamespace(Job=None, RQBackend=Suite)
    sys.modules["django_tasks_db"].DatabaseBackend = Suite
    sys.modules["django_tasks_db.models"].DBTaskResult = types.SimpleNamespace(
        objects=types.SimpleNamespace(ready=lambda: Ready))


def tests_of(name, module, left_out):
    """The tests that are run; those that are not go into left_out, each with its reason."""
    found = []
    for suite in unittest.defaultTestLoader.loadTestsFromModule(module):
        for test in suite:
            reason = CLASSES_LEFT_OUT.get(type(test).__name__) or LEFT_OUT[name].get(test._testMethodName)
            if reason is None:
                found.append(test)
            else:
                left_out.setdefault(reason, []).append(f"{name}.{test._testMethodName}")
    return found


def run(name, tests):
    stream = open(os.path.join(FOLDER, f"{name}.out"), "w")
    outcome = unittest.TextTestRunner(stream, verbosity=2).run(unittest.TestSuite(tests))
    bad = [f"{test.id()}: {text.strip().splitlines()[-1]}" for test, text in outcome.failures + outcome.errors]
    return {"name": name, "run": outcome.testsRun, "skipped": len(outcome.skipped), "failed": bad}


def play():
    from django.test.runner import DiscoverRunner
    copy_tests()
    stand_ins()
    runner = DiscoverRunner(verbosity=0, interactive=False)
    runner.setup_test_environment()
    databases, left_out, results = runner.setup_databases(), {}, []
    import tasks.test_dummy_backend
    import tasks.test_tasks
    for name, module in (("test_tasks", tasks.test_tasks), ("test_dummy_backend", tasks.test_dummy_backend)):
        results.append(run(name, tests_of(name, module, left_out)))
    for name, reason in FILES_LEFT_OUT.items():
        module = __import__(f"tasks.{name}", fromlist=["x"])
        LEFT_OUT[name] = {}
        for test in tests_of(name, module, {}):
            left_out.setdefault(reason, []).append(f"{name}.{test._testMethodName}")
    open(LOG, "w").close()
    Suite.flush()
    for queue in QUEUES:
        command("queue", "pause", queue)
    worker = subprocess.Popen([sys.executable, __file__, FOLDER, "holdfast", "--processes", "1"],
                              stdout=subprocess.DEVNULL, stderr=open(os.path.join(FOLDER, "worker.err"), "w"))
    try:
        import db_tests
        import rq_tests
        rq_tests.RQBackendTestCase.setUp = lambda self: run_worker("*", tell=False)
        rq_tests.RQBackendTestCase.run_worker = lambda self: run_worker("*")
        for case in (db_tests.DatabaseBackendTestCase, db_tests.DatabaseBackendWorkerTestCase):
            case.setUp = lambda self: run_worker("*", tell=False)
            case.assertNumQueries = lambda self, *_: contextlib.nullcontext()  # no query, whatever they expect
        db_tests.DatabaseBackendWorkerTestCase.run_worker = staticmethod(run_worker)
        results += [run("rq", tests_of("rq", rq_tests, left_out)), run("db", tests_of("db", db_tests, left_out))]
    finally:
        worker.terminate()
        status = worker.wait(60)
    runner.teardown_databases(databases)
    print(json.dumps({"results": results, "left_out": left_out, "worker": status}))


if __name__ == "__main__":
    os.makedirs(os.path.join(FOLDER, "copy"), exist_ok=True)  # a path that is missing now is missing for ever
    sys.path.insert(0, os.path.join(FOLDER, "copy"))
    sys.modules["django_suite"] = sys.modules["__main__"]
    configure(is_worker=bool(WORDS))

from holdfast_queue.django import Backend  # noqa: E402: settings come first


class Suite(Backend):
    """Our backend, with what tests of the dummy backend use beside it."""

    @staticmethod
    def flush():
        from django.tasks import default_task_backend
        connect().flushall()
        default_task_backend.hf._registered.clear()

    def clear(self):
        self.flush()

    @property
    def results(self):
        return [self.get_result(id) for id in waiting("default")]


if __name__ == "__main__":
    if WORDS:
        from django.core.management import execute_from_command_line
        execute_from_command_line(["manage.py", *WORDS])
    else:
        play()
