// A worker: works until its host tells it to finish, and stops when its host is gone.
const [session, task] = process.argv.slice(2);

process.on('disconnect', () => process.exit(0));
process.on('message', (message) => {
  if (message === 'finish') process.disconnect();
});
process.send(`${session} works on task ${task}`);
