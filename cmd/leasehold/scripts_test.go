package main

import "testing"

func TestBench(t *testing.T) { scripts(t, "bench") }

func TestElect(t *testing.T) { scripts(t, "elect") }

func TestLog(t *testing.T) { scripts(t, "log") }

func TestPlan(t *testing.T) { scripts(t, "plan") }

func TestServe(t *testing.T) { scripts(t, "serve") }

func TestStandby(t *testing.T) { scripts(t, "standby") }

func TestAcquire(t *testing.T) { scripts(t, "acquire") }

func TestLock(t *testing.T) { scripts(t, "lock") }

func TestBreak(t *testing.T) { scripts(t, "break") }

func TestCheck(t *testing.T) { scripts(t, "check") }

func TestConfig(t *testing.T) { scripts(t, "config") }

func TestCost(t *testing.T) { scripts(t, "cost") }

func TestDoctor(t *testing.T) { scripts(t, "doctor") }

func TestUsage(t *testing.T) { scripts(t, "usage") }

func TestGate(t *testing.T) { scripts(t, "gate") }

func TestHistory(t *testing.T) { scripts(t, "history") }

func TestID(t *testing.T) { scripts(t, "id") }

func TestInit(t *testing.T) { scripts(t, "init") }

func TestList(t *testing.T) { scripts(t, "list") }

func TestMan(t *testing.T) { scripts(t, "man") }

func TestRelease(t *testing.T) { scripts(t, "release") }

func TestRun(t *testing.T) { scripts(t, "run") }

func TestShardScripts(t *testing.T) { scripts(t, "shard") }

func TestShow(t *testing.T) { scripts(t, "show") }

func TestVerify(t *testing.T) { scripts(t, "verify") }

func TestVersion(t *testing.T) { scripts(t, "version") }

func TestWatch(t *testing.T) { scripts(t, "watch") }

func TestWithLock(t *testing.T) { scripts(t, "with-lock") }
