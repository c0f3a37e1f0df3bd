"""Many simulations at once, against one plain MuJoCo simulation at a time."""

from __future__ import annotations

import os

import mujoco
import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from consmimic.sim import CpuPhysics, available_threads

# An arm that is driven and a box that slides: joints, actuators, contacts, sensors.
MJCF = """
<mujoco>
  <option timestep="0.004" integrator="implicitfast" cone="elliptic" impratio="10"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" friction="0.6 0.005 0.0001"/>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="1"/>
      <body name="fore" pos="0.3 0 0">
        <joint name="elbow" axis="0 1 0" damping="0.1"/>
        <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.02" mass="0.5"/>
        <site name="tip" pos="0.2 0 0"/>
      </body>
    </body>
    <body name="box" pos="0 1 0.1">
      <freejoint/>
      <geom name="box" type="box" size="0.1 0.1 0.1" mass="2"/>
    </body>
  </worldbody>
  <actuator>
    <position name="shoulder" joint="shoulder" kp="40" kv="2"/>
    <position name="elbow" joint="elbow" kp="20" kv="1"/>
  </actuator>
  <sensor><framelinvel objtype="site" objname="tip"/></sensor>
</mujoco>
"""
MODEL = mujoco.MjModel.from_xml_string(MJCF)
BOX_X_VEL = 2  # of qvel: after the two hinges
N = 6


def physics(count: int = N, threads: int = 1) -> CpuPhysics:
    """Every robot in a state of its own: arm, and a box that slides at its own speed."""
    made = CpuPhysics(MODEL, count, threads)
    generator = torch.Generator().manual_seed(0)
    qpos, qvel = made.read("qpos"), made.read("qvel")
    qpos[:, :2] = torch.rand(count, 2, generator=generator) - 0.5
    qvel[:, BOX_X_VEL] = 1.0 + torch.rand(count, generator=generator)
    made.write("qpos", qpos)
    made.write("qvel", qvel)
    made.forward()
    return made


def controls(step: int, count: int = N) -> Tensor:
    return torch.randn(count, 2, generator=torch.Generator().manual_seed(100 + step))


def advance(simulated: CpuPhysics, steps: int, first: int = 0) -> None:
    for step in range(first, first + steps):
        simulated.write("ctrl", controls(step, simulated.num_envs))
        simulated.step(3)


def exact(simulated: CpuPhysics) -> dict[str, Tensor]:
    """All that is known, in full precision."""
    derived = {name: torch.from_numpy(simulated.batch.bind(name).copy()) for name in ("xpos", "xquat", "sensordata")}
    return simulated.state_dict() | derived


def assert_same_bits(a: dict[str, Tensor], b: dict[str, Tensor]) -> None:
    assert a.keys() == b.keys()
    assert [name for name in a if not torch.equal(a[name], b[name])] == []


# ---------------------------------------------------------------- against plain MuJoCo


def test_every_simulation_is_a_plain_mujoco_simulation_to_the_bit():
    simulated = physics()
    initial = simulated.batch.bind("qpos").copy(), simulated.batch.bind("qvel").copy()
    advance(simulated, 40)
    for robot in range(N):
        data = mujoco.MjData(MODEL)
        data.qpos[:], data.qvel[:] = initial[0][robot], initial[1][robot]
        for step in range(40):
            data.ctrl[:] = controls(step)[robot].double().numpy()
            mujoco.mj_step(MODEL, data, 3)
        assert np.array_equal(simulated.batch.bind("qpos")[robot], data.qpos)
        assert np.array_equal(simulated.batch.bind("qvel")[robot], data.qvel)
        assert data.ncon > 0  # the box slides on the floor


def test_derived_fields_are_those_of_the_new_state():
    simulated = physics()
    advance(simulated, 5)
    before = simulated.read("xpos")
    advance(simulated, 1, first=5)
    for robot in range(N):
        data = mujoco.MjData(MODEL)
        data.qpos[:] = simulated.batch.bind("qpos")[robot]
        data.qvel[:] = simulated.batch.bind("qvel")[robot]
        mujoco.mj_forward(MODEL, data)
        assert_close(simulated.read("xpos")[robot].numpy(), data.xpos.astype(np.float32))
        assert_close(
            simulated.read("sensordata")[robot].numpy(),
            data.sensordata.astype(np.float32),
            atol=1e-6,
            rtol=1e-5,
        )
    fore = MODEL.body("fore").id
    assert (simulated.read("xpos")[:, fore] - before[:, fore]).norm(dim=1).min() > 1e-4  # a substep would show


def test_a_field_that_nobody_read_before_is_current_too():
    simulated = physics()
    advance(simulated, 3)
    read_late = simulated.read("site_xpos")
    simulated.forward()
    assert torch.equal(read_late, simulated.read("site_xpos"))
    assert read_late.norm(dim=-1).min() > 0.5


def test_forward_makes_derived_fields_follow_a_write_without_advancing():
    simulated = physics()
    qpos = simulated.read("qpos")
    qpos[:, 0] = torch.tensor(0.25) * torch.arange(N)
    simulated.write("qpos", qpos)
    simulated.forward()
    reach = 0.3 * torch.stack([torch.cos(qpos[:, 0]), -torch.sin(qpos[:, 0])], dim=1)
    assert_close(simulated.read("xpos")[:, MODEL.body("fore").id, ::2], reach + torch.tensor([0.0, 1.0]))
    assert torch.equal(simulated.read("time"), torch.zeros(N))


# ---------------------------------------------------------------- determinism and state


@pytest.mark.parametrize("threads", [2, 3])
def test_the_same_bits_at_any_number_of_threads(threads):
    one, many = physics(threads=1), physics(threads=threads)
    assert many.batch.nthread == threads
    advance(one, 30)
    advance(many, 30)
    assert_same_bits(exact(one), exact(many))


def test_a_saved_state_goes_on_to_the_bit_in_another_simulation():
    uninterrupted = physics()
    advance(uninterrupted, 20)
    saved = uninterrupted.state_dict()
    advance(uninterrupted, 20, first=20)

    resumed = CpuPhysics(MODEL, N, threads=2)
    resumed.load_state_dict(saved)
    advance(resumed, 20, first=20)
    assert_same_bits(exact(uninterrupted), exact(resumed))


def test_a_saved_state_stays_as_it_was_saved():
    simulated = physics()
    saved = simulated.state_dict()
    copies = {name: values.clone() for name, values in saved.items()}
    advance(simulated, 3)
    assert_same_bits(saved, copies)
    assert not torch.equal(saved["qpos"], simulated.state_dict()["qpos"])


def test_loading_makes_the_derived_fields_current():
    simulated = physics()
    saved, wanted = simulated.state_dict(), simulated.read("xpos")
    advance(simulated, 10)
    simulated.load_state_dict(saved)
    assert torch.equal(simulated.read("xpos"), wanted)


# ---------------------------------------------------------------- read, write, reset


def test_reading_some_gives_their_rows_and_fresh_float32():
    simulated = physics()
    ids = torch.tensor([4, 1])
    assert torch.equal(simulated.read("qpos", ids), simulated.read("qpos")[ids])
    assert torch.equal(simulated.read("xpos", ids), simulated.read("xpos")[ids])
    for field in ("qpos", "xpos"):
        first, second = simulated.read(field), simulated.read(field, ids)
        assert first.dtype == second.dtype == torch.float32
        kept = first.clone()
        second.fill_(7.0)
        assert torch.equal(simulated.read(field), kept)
        first.fill_(7.0)
        assert torch.equal(simulated.read(field), kept)


def test_what_was_read_does_not_change_when_the_simulation_goes_on():
    simulated = physics()
    qpos, xpos = simulated.read("qpos"), simulated.read("xpos")
    kept = qpos.clone(), xpos.clone()
    advance(simulated, 2)
    assert torch.equal(qpos, kept[0])
    assert torch.equal(xpos, kept[1])


def test_writing_some_leaves_the_others():
    simulated = physics()
    before = simulated.read("qpos")
    ids = torch.tensor([2, 5])
    values = before[ids] + torch.tensor([[0.5], [0.25]])
    simulated.write("qpos", values, ids)
    simulated.forward(ids)
    after = simulated.read("qpos")
    assert torch.equal(after[ids], values)
    others = torch.tensor([0, 1, 3, 4])
    assert torch.equal(after[others], before[others])


def test_reset_takes_some_back_to_the_models_defaults_and_leaves_the_others():
    simulated, untouched = physics(), physics()
    advance(simulated, 15)
    advance(untouched, 15)
    ids = torch.tensor([0, 3])
    simulated.reset(ids)
    simulated.forward(ids)
    assert torch.equal(simulated.read("qpos", ids), torch.from_numpy(MODEL.qpos0.astype(np.float32)).repeat(2, 1))
    for field in ("qvel", "ctrl", "time", "qacc_warmstart"):
        assert simulated.read(field, ids).abs().max() == 0.0
        assert untouched.read(field, ids).abs().max() > 0.0
    advance(simulated, 10, first=15)
    advance(untouched, 10, first=15)
    others = torch.tensor([1, 2, 4, 5])
    assert torch.equal(simulated.read("qpos", others), untouched.read("qpos", others))


def test_a_reset_robot_moves_as_a_new_one_to_the_bit():
    used, new = physics(), CpuPhysics(MODEL, N, threads=1)
    advance(used, 25)
    used.reset()
    used.forward()
    advance(used, 10)
    advance(new, 10)
    assert_same_bits(exact(used), exact(new))


# ---------------------------------------------------------------- one model per robot


def slid(simulated: CpuPhysics) -> Tensor:
    """How far each box gets while it comes to rest."""
    column = MODEL.joint("shoulder").qposadr[0] + 2
    start = simulated.read("qpos")[:, column]
    for _ in range(60):
        simulated.step(3)
    return simulated.read("qpos")[:, column] - start


def equal_boxes() -> CpuPhysics:
    simulated = CpuPhysics(MODEL, N, threads=1)
    qvel = simulated.read("qvel")
    qvel[:, BOX_X_VEL] = 1.5
    simulated.write("qvel", qvel)
    simulated.forward()
    return simulated


def test_friction_of_one_robot_changes_that_robot_only():
    plain, varied = equal_boxes(), equal_boxes()
    friction = varied.vary("geom_friction")
    friction[2, [MODEL.geom("floor").id, MODEL.geom("box").id], 0] = 0.2
    varied.finish_variation()
    ordinary, changed = slid(plain), slid(varied)
    others = torch.arange(N) != 2
    assert torch.equal(ordinary[others], changed[others])
    assert changed[2] > 2.0 * ordinary[2]


def test_gains_of_one_robot_change_that_robot_only():
    plain, varied = physics(), physics()
    gains, bias = varied.vary("actuator_gainprm"), varied.vary("actuator_biasprm")
    gains[4, :, 0] *= 0.5
    bias[4, :, 1:3] *= 0.5
    varied.finish_variation()
    advance(plain, 10)
    advance(varied, 10)
    same = (plain.read("qpos") == varied.read("qpos")).all(dim=1)
    assert same.tolist() == [robot != 4 for robot in range(N)]


def test_a_heavier_robot_is_the_one_that_mujoco_compiles_with_that_mass():
    varied = physics()
    mass, inertia = varied.vary("body_mass"), varied.vary("body_inertia")
    fore = MODEL.body("fore").id
    mass[1, fore] *= 3.0
    inertia[1, fore] *= 3.0
    varied.finish_variation()
    heavy = mujoco.MjModel.from_xml_string(MJCF.replace('mass="0.5"', 'mass="1.5"'))
    data = {robot: mujoco.MjData(heavy if robot == 1 else MODEL) for robot in (0, 1)}
    for robot, one in data.items():
        one.qpos[:] = varied.batch.bind("qpos")[robot]
        one.qvel[:] = varied.batch.bind("qvel")[robot]
    advance(varied, 20)
    for robot, one in data.items():
        for step in range(20):
            one.ctrl[:] = controls(step)[robot].double().numpy()
            mujoco.mj_step(heavy if robot == 1 else MODEL, one, 3)
        np.testing.assert_allclose(varied.batch.bind("qpos")[robot], one.qpos, rtol=1e-9, atol=1e-12)
    assert np.abs(data[0].qpos[:2] - data[1].qpos[:2]).max() > 1e-2


def test_finishing_a_variation_recomputes_what_derives_from_it_and_keeps_the_state():
    varied = physics()
    advance(varied, 5)
    before = varied.state_dict()
    varied.vary("body_mass")[3, MODEL.body("box").id] = 5.0
    varied.finish_variation()
    assert_same_bits(before, {name: values for name, values in varied.state_dict().items() if name in before})
    subtree_mass = varied.batch.expanded("body_subtreemass")
    assert subtree_mass is not None
    world = MODEL.body("world").id
    assert subtree_mass[:, world] == pytest.approx([3.5 + (3.0 if robot == 3 else 0.0) for robot in range(N)])


def test_a_saved_state_brings_its_varied_model_along():
    varied = physics()
    varied.vary("body_mass")[:, MODEL.body("fore").id] = np.linspace(0.2, 2.0, N)
    varied.finish_variation()
    advance(varied, 10)
    saved = varied.state_dict()
    advance(varied, 10, first=10)

    resumed = CpuPhysics(MODEL, N, threads=1)
    resumed.load_state_dict(saved)
    advance(resumed, 10, first=10)
    assert_same_bits(exact(varied), exact(resumed))


# ---------------------------------------------------------------- threads


def test_the_default_is_every_core_that_the_process_may_use():
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system has no affinity masks")
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert available_threads() == 1
        assert CpuPhysics(MODEL, 2).threads == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert available_threads() == len(allowed)
