"""Frame by frame, the joint angles that come nearest to the targets within the limits: mink's quadratic programs."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Mapping

import mink
import mujoco
import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError
from consmimic.motions.forward import base_qpos
from consmimic.motions.retarget.correspondence import Correspondence
from consmimic.motions.retarget.targets import Targets

Array = NDArray[np.float64]

# Of 1 m or 1 rad of error. Feet come first; base and torso give way to them, and the posture to all.
_FOOT_COST, _SOLE_COST = 100.0, 30.0
_BASE_COST, _BASE_TURN_COST = 4.0, 4.0
_TORSO_COST, _ELBOW_COST, _HAND_COST = 2.0, 1.0, 2.0
_POSTURE_COST = 0.02

_ITERATIONS = 30
_FIRST_ITERATIONS = 300
_LARGEST_STEP = 0.1
"""rad, in an iteration. In larger ones a leg at its limits may fold to the wrong side and stay there."""
_CONVERGED = 1e-6
_DAMPING = 1e-9
_SOLVER = "daqp"


class PointTask(mink.Task):
    """Bring a point of a body to a place in the world, or in the frame of another body."""

    def __init__(self, model: mujoco.MjModel, body: str, point: Array, cost: float, frame: str | None = None) -> None:
        super().__init__(cost=np.full(3, cost))
        self._body, self._point = model.body(body).id, point
        self._frame = None if frame is None else model.body(frame).id
        self._jacobian, self._turning = np.zeros((3, model.nv)), np.zeros((3, model.nv))
        self.target = np.zeros(3)

    def compute_error(self, configuration: mink.Configuration) -> Array:
        place = self._place(configuration.data)
        if self._frame is not None:
            data = configuration.data
            place = data.xmat[self._frame].reshape(3, 3).T @ (place - data.xpos[self._frame])
        return place - self.target

    def compute_jacobian(self, configuration: mink.Configuration) -> Array:
        model, data = configuration.model, configuration.data
        place = self._place(data)
        mujoco.mj_jac(model, data, self._jacobian, None, place, self._body)
        J = self._jacobian.copy()
        if self._frame is not None:  # d(Rᵀ(p − o)) = Rᵀ(dp − do − ω × (p − o)) = Rᵀ(dp − velocity of the frame at p)
            mujoco.mj_jac(model, data, self._turning, None, place, self._frame)
            J = data.xmat[self._frame].reshape(3, 3).T @ (J - self._turning)
        return J

    def _place(self, data: mujoco.MjData) -> Array:
        return data.xpos[self._body] + data.xmat[self._body].reshape(3, 3) @ self._point


class StepLimit(mink.Limit):
    """Joints may be at most so far from where they were in the frame before, however many iterations it takes."""

    def __init__(self, qpos: NDArray[np.intp], dofs: NDArray[np.intp], largest: Array, nv: int) -> None:
        self._qpos, self._largest = qpos, largest
        self._selection = np.eye(nv)[dofs]
        self.before: Array | None = None

    def compute_qp_inequalities(self, configuration: mink.Configuration, dt: float) -> mink.Constraint:
        del dt
        if self.before is None:
            return mink.Constraint()
        gone = configuration.q[self._qpos] - self.before[self._qpos]
        G = np.vstack([self._selection, -self._selection])
        return mink.Constraint(G=G, h=np.concatenate([self._largest - gone, self._largest + gone]))


def solve(
    model: mujoco.MjModel,
    pairs: Correspondence,
    aims: Targets,
    *,
    start: Array,
    fps: float,
    joint_velocity_limits: Mapping[str, float] | None,
) -> Array:
    """Generalized coordinates of each frame, (T, nq). The search begins at `start` and prefers its posture."""
    configuration = mink.Configuration(model, start)
    base = mink.FrameTask(pairs.base, "body", position_cost=_BASE_COST, orientation_cost=_BASE_TURN_COST)
    posture = mink.PostureTask(model, cost=_POSTURE_COST)
    posture.set_target(start)
    tasks: list[mink.Task] = [base, posture]
    soles = {
        body: mink.FrameTask(body, "body", position_cost=_FOOT_COST, orientation_cost=_SOLE_COST)
        for body, foot in aims.feet.items()
        if foot.quat is not None
    }
    balls = {
        body: PointTask(model, body, foot.point, _FOOT_COST) for body, foot in aims.feet.items() if foot.quat is None
    }
    carrier = pairs.torso or pairs.base
    elbows = {body: PointTask(model, body, np.zeros(3), _ELBOW_COST, carrier) for body in aims.hands}
    hands = {body: PointTask(model, body, hand.hand_offset, _HAND_COST, carrier) for body, hand in aims.hands.items()}
    tasks += [*soles.values(), *balls.values(), *elbows.values(), *hands.values()]
    torso = None
    if pairs.torso is not None and aims.torso_quat is not None:
        torso = mink.FrameTask(pairs.torso, "body", position_cost=0.0, orientation_cost=_TORSO_COST)
        tasks.append(torso)

    hinges = [model.joint(joint).name for joint in np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE)]
    steps = mink.VelocityLimit(model, dict.fromkeys(hinges, _LARGEST_STEP))  # of iterations 1 s long
    limits: list[mink.Limit] = [mink.ConfigurationLimit(model), steps]
    beginning = start.copy()
    beginning[base_qpos(model, pairs.base)] = [*aims.base_pos[0], *aims.base_quat[0]]
    configuration.update(beginning)
    step = None if joint_velocity_limits is None else _step_limit(model, joint_velocity_limits, fps)
    if step is not None:
        limits.append(step)

    solution = np.empty((len(aims.base_pos), model.nq))
    for frame in range(len(solution)):
        base.set_target(_pose(aims.base_quat[frame], aims.base_pos[frame]))
        for body, task in soles.items():
            foot = aims.feet[body]
            assert foot.quat is not None
            task.set_target(_pose(foot.quat[frame], foot.pos[frame]))
        for body, task in balls.items():
            task.target = aims.feet[body].pos[frame]
        for body, hand in aims.hands.items():
            elbows[body].target, hands[body].target = hand.elbow[frame], hand.hand[frame]
        if torso is not None and aims.torso_quat is not None:
            torso.set_target(_pose(aims.torso_quat[frame], np.zeros(3)))
        if step is not None and frame > 0:
            step.before = solution[frame - 1]
        solution[frame] = _converge(configuration, tasks, limits, _ITERATIONS if frame else _FIRST_ITERATIONS)
    return solution


def _converge(
    configuration: mink.Configuration, tasks: list[mink.Task], limits: list[mink.Limit], iterations: int
) -> Array:
    for _ in range(iterations):
        try:
            change = mink.solve_ik(configuration, tasks, 1.0, _SOLVER, damping=_DAMPING, limits=limits)
        except mink.NoSolutionFound as error:
            raise UserError(f"no joint angles within the limits were found: {error}") from None
        configuration.integrate_inplace(change, 1.0)
        if np.abs(change).max() < _CONVERGED:
            break
    return configuration.q.copy()


def _step_limit(model: mujoco.MjModel, joint_velocity_limits: Mapping[str, float], fps: float) -> StepLimit:
    joints = [model.joint(name) for name in joint_velocity_limits]
    return StepLimit(
        np.array([int(joint.qposadr[0]) for joint in joints]),
        np.array([int(joint.dofadr[0]) for joint in joints]),
        np.array(list(joint_velocity_limits.values())) / fps,
        model.nv,
    )


def _pose(quaternion: Array, position: Array) -> mink.SE3:
    return mink.SE3(np.concatenate([quaternion, position]))
